// TLS over a stream, as a client that wants to know what is wrong: all faults of the server's
// certificate are collected, and what it says of itself is kept, before the handshake is broken
// off. The own certificate is shown only to a server that was found right. OpenSSL's; the streams'
// deadlines; 256 KiB at most are read in a handshake.
//
//   TlsStream tls(&tcp, config);
//   const TlsHandshake seen = tls.Handshake(deadline);
//   if (seen.result == TlsHandshake::Result::kDone) tls.Send(...);
//
// Not thread-safe.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/client/probe/certificate.h"
#include "common/client/probe/socket.h"
#include "common/security/tls_files.h"

namespace distro {

struct TlsConfig {
  // The CAs that count (empty: the system's), and the own certificate, or none.
  TlsMaterial material;
  // That the certificate must be for; a name is also asked for (SNI), an IP address is not.
  std::string server_name;
  // By which certificates have begun or ended.
  absl::Time now = absl::InfinitePast();
};

struct TlsHandshake {
  enum class Result {
    kDone,
    kRefusedByUs,    // the certificate; see the three faults
    kRefusedByPeer,  // an alert; see `error`
    kNoTls,          // what came is no TLS: see first_bytes, which may be empty
    kInterrupted,    // see `status`; Internal: of this machine
  };
  Result result = Result::kInterrupted;
  absl::Status status = absl::OkStatus();
  std::string error;        // OpenSSL's words
  std::string first_bytes;  // as far as greeting.h looks

  std::optional<CertificateFacts> certificate;
  std::string version;  // "TLSv1.3"
  std::string alpn;     // that the server chose; empty: none

  // Of the certificate, or of one between it and its CA.
  std::string untrusted;  // OpenSSL's words for why no CA that counts is behind it
  bool name_mismatch = false;
  std::optional<CertificateFacts> out_of_date;  // which of them
};

class TlsStream final : public ByteStream {
 public:
  // `below` is borrowed.
  TlsStream(ByteStream* below, TlsConfig config);
  ~TlsStream() override;

  // Once.
  TlsHandshake Handshake(const Deadline& deadline);

  // After a handshake that is done. Unauthenticated: the peer ends it with an alert, such as about
  // the own certificate.
  absl::Status Send(absl::string_view bytes, const Deadline& deadline) override;
  absl::StatusOr<std::string> Receive(size_t limit, const Deadline& deadline) override;

  // Names of the CAs in --ca, 4 at most; empty: the system's count.
  const std::vector<std::string>& ca_names() const { return ca_names_; }

 private:
  struct Freed {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  absl::Status SetUp();
  absl::Status UseCas();
  absl::Status UseOwnCertificate();
  static int VerifyChain(X509_STORE_CTX* store, void* self);
  static int NoteFault(int ok, X509_STORE_CTX* store);
  // What OpenSSL wants to send, then what it waits for. OutOfRange: the peer closed.
  absl::Status Flush(const Deadline& deadline);
  absl::Status Feed(const Deadline& deadline);
  // Repeats `step`, an operation of OpenSSL, until it is done.
  template <typename Step>
  absl::StatusOr<int> Pump(const Step& step, const Deadline& deadline);

  ByteStream* const below_;
  const TlsConfig config_;
  std::vector<std::string> ca_names_;
  std::unique_ptr<SSL_CTX, Freed> context_;
  std::unique_ptr<SSL, Freed> ssl_;
  BIO* from_peer_ = nullptr;  // of ssl_, as the next
  BIO* to_peer_ = nullptr;
  size_t received_ = 0;  // bytes, in all
  TlsHandshake seen_;
};

}  // namespace distro
