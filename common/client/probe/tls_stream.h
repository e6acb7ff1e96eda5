// TLS over a stream, for a client that diagnoses a connection: it collects all faults of the
// server's certificate, and its facts, before it ends the handshake. It sends its own certificate
// only to a server whose certificate is valid. Uses OpenSSL and the stream's deadlines; reads at
// most 256 KiB in a handshake.
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
#include "common/net/security/tls_files.h"

namespace distro {

struct TlsConfig {
  // The trusted CAs (empty: the system's), and the client's own certificate, if any.
  TlsMaterial material;
  // The name expected in the certificate; also sent as SNI, unless it is an IP address.
  std::string server_name;
  // The time at which certificates must be valid.
  absl::Time now = absl::InfinitePast();
};

struct TlsHandshake {
  enum class Result {
    kDone,
    kRefusedByUs,    // the certificate is bad; see the three faults
    kRefusedByPeer,  // an alert; see `error`
    kNoTls,          // the peer does not speak TLS: see first_bytes, which may be empty
    kInterrupted,    // see `status`; Internal: a fault of this machine
  };
  Result result = Result::kInterrupted;
  absl::Status status = absl::OkStatus();
  std::string error;        // OpenSSL's text
  std::string first_bytes;  // at most what greeting.h reads

  std::optional<CertificateFacts> certificate;
  std::string version;  // "TLSv1.3"
  std::string alpn;     // chosen by the server; empty: none

  // Of the certificate, or of one between it and its CA:
  std::string untrusted;  // OpenSSL's text on why no trusted CA has issued it
  bool name_mismatch = false;
  std::optional<CertificateFacts> out_of_date;  // the certificate that is out of date
};

class TlsStream final : public ByteStream {
 public:
  // `below` is borrowed.
  TlsStream(ByteStream* below, TlsConfig config);
  ~TlsStream() override;

  // Call once.
  TlsHandshake Handshake(const Deadline& deadline);

  // After a completed handshake. Unauthenticated: the peer ends it with an alert, for example about
  // the client's certificate.
  absl::Status Send(absl::string_view bytes, const Deadline& deadline) override;
  absl::StatusOr<std::string> Receive(size_t limit, const Deadline& deadline) override;

  // Names of the CAs in --ca, at most 4; empty: the system's CAs are used.
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
  // Flush sends what OpenSSL has to send; Feed reads what it waits for. OutOfRange: the peer
  // closed.
  absl::Status Flush(const Deadline& deadline);
  absl::Status Feed(const Deadline& deadline);
  // Repeats `step`, an OpenSSL operation, until it is complete.
  template <typename Step>
  absl::StatusOr<int> Pump(const Step& step, const Deadline& deadline);

  ByteStream* const below_;
  const TlsConfig config_;
  std::vector<std::string> ca_names_;
  std::unique_ptr<SSL_CTX, Freed> context_;
  std::unique_ptr<SSL, Freed> ssl_;
  BIO* from_peer_ = nullptr;  // owned by ssl_
  BIO* to_peer_ = nullptr;    // owned by ssl_
  size_t received_ = 0;       // bytes in total
  TlsHandshake seen_;
};

}  // namespace distro
