#include "common/client/probe/tls_stream.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/client/probe/greeting.h"

namespace distro {
namespace {

constexpr size_t kMaxReceivedBytes = 256 << 10;
constexpr size_t kReadBytes = 16 << 10;
constexpr size_t kMaxCaNames = 4;
// The protocol that gRPC offers, in ALPN's form: length and name.
constexpr unsigned char kAlpn[] = {2, 'h', '2'};
// gRPC's variable for a file that replaces the system's CAs.
constexpr char kRootsVariable[] = "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH";

using OwnedBio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using OwnedX509 = std::unique_ptr<X509, decltype(&X509_free)>;

OwnedBio Reader(absl::string_view pem) {
  return OwnedBio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
}

OwnedX509 NextCertificate(BIO* bio) {
  return OwnedX509(PEM_read_bio_X509(bio, nullptr, nullptr, nullptr), X509_free);
}

// OpenSSL's newest error in this thread, as text.
std::string TakeError() {
  const unsigned long error = ERR_peek_last_error();  // NOLINT: OpenSSL's type
  const char* const reason = ERR_reason_error_string(error);
  ERR_clear_error();
  return reason == nullptr ? "unknown error" : reason;
}

// OpenSSL's error codes for a peer's alerts are 1000 plus the alert's number.
bool IsAlert(unsigned long error) {  // NOLINT: OpenSSL's type
  return ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) >= SSL_AD_REASON_OFFSET &&
         ERR_GET_REASON(error) < SSL_AD_REASON_OFFSET + 256;
}

bool IsIpAddress(const std::string& name) {
  unsigned char address[sizeof(in6_addr)];
  return inet_pton(AF_INET, name.c_str(), address) == 1 ||
         inet_pton(AF_INET6, name.c_str(), address) == 1;
}

bool SetPeer(SSL* ssl, const std::string& name) {
  if (IsIpAddress(name))
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name.c_str()) == 1;
  return SSL_set1_host(ssl, name.c_str()) == 1 && SSL_set_tlsext_host_name(ssl, name.c_str()) == 1;
}

}  // namespace

TlsStream::TlsStream(ByteStream* below, TlsConfig config)
    : below_(below), config_(std::move(config)) {}

TlsStream::~TlsStream() = default;

absl::Status TlsStream::UseCas() {
  X509_STORE* const store = SSL_CTX_get_cert_store(context_.get());
  // As gRPC: trusts a certificate in --ca whether it is a root or not.
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST);
  if (config_.material.ca.empty()) {
    const char* const file = std::getenv(kRootsVariable);
    const int loaded = file != nullptr ? X509_STORE_load_file(store, file)
                                       : SSL_CTX_set_default_verify_paths(context_.get());
    if (loaded != 1) return absl::InternalError(absl::StrCat("the system's CAs: ", TakeError()));
    return absl::OkStatus();
  }
  const OwnedBio bio = Reader(config_.material.ca);
  while (const OwnedX509 ca = NextCertificate(bio.get())) {
    if (ca_names_.size() < kMaxCaNames)
      ca_names_.push_back(NameText(X509_get_subject_name(ca.get())));
    if (X509_STORE_add_cert(store, ca.get()) != 1)
      return absl::InternalError(absl::StrCat("--ca: ", TakeError()));
  }
  ERR_clear_error();  // the end of the file sets one
  return absl::OkStatus();
}

absl::Status TlsStream::UseOwnCertificate() {
  if (config_.material.cert.empty()) return absl::OkStatus();
  const OwnedBio bio = Reader(config_.material.cert);
  const OwnedX509 certificate = NextCertificate(bio.get());
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(Reader(config_.material.key).get(), nullptr, nullptr, nullptr),
      EVP_PKEY_free);
  if (SSL_CTX_use_certificate(context_.get(), certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context_.get(), key.get()) != 1) {
    return absl::InternalError(absl::StrCat("--cert, --key: ", TakeError()));
  }
  while (const OwnedX509 link = NextCertificate(bio.get()))
    SSL_CTX_add1_chain_cert(context_.get(), link.get());
  ERR_clear_error();
  return absl::OkStatus();
}

absl::Status TlsStream::SetUp() {
  ERR_clear_error();
  context_.reset(SSL_CTX_new(TLS_client_method()));
  if (context_ == nullptr) return absl::InternalError(TakeError());
  SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_cert_verify_callback(context_.get(), VerifyChain, this);
  DISTRO_RETURN_IF_ERROR(UseCas());
  DISTRO_RETURN_IF_ERROR(UseOwnCertificate());
  ssl_.reset(SSL_new(context_.get()));
  if (ssl_ == nullptr || !SetPeer(ssl_.get(), config_.server_name) ||
      SSL_set_alpn_protos(ssl_.get(), kAlpn, sizeof(kAlpn)) != 0) {
    return absl::InternalError(TakeError());
  }
  X509_VERIFY_PARAM_set_time(SSL_get0_param(ssl_.get()), absl::ToTimeT(config_.now));
  SSL_set_app_data(ssl_.get(), this);
  from_peer_ = BIO_new(BIO_s_mem());
  to_peer_ = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl_.get(), from_peer_, to_peer_);  // which takes ownership
  SSL_set_connect_state(ssl_.get());
  return absl::OkStatus();
}

int TlsStream::VerifyChain(X509_STORE_CTX* store, void* self) {
  TlsHandshake& seen = static_cast<TlsStream*>(self)->seen_;
  if (X509* const leaf = X509_STORE_CTX_get0_cert(store); leaf != nullptr)
    seen.certificate = FactsOf(leaf);
  X509_STORE_CTX_set_verify_cb(store, NoteFault);
  if (X509_verify_cert(store) != 1 && seen.untrusted.empty())
    seen.untrusted = X509_verify_cert_error_string(X509_STORE_CTX_get_error(store));
  return seen.untrusted.empty() && !seen.name_mismatch && !seen.out_of_date ? 1 : 0;
}

// Continues after a fault, so that all of them are collected.
int TlsStream::NoteFault(int ok, X509_STORE_CTX* store) {
  if (ok == 1) return 1;
  const auto* const ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  TlsHandshake& seen = static_cast<TlsStream*>(SSL_get_app_data(ssl))->seen_;
  const X509* const about = X509_STORE_CTX_get_current_cert(store);
  switch (const int error = X509_STORE_CTX_get_error(store); error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      // The CAs' certificates come first; the server's own, which comes last, is the most useful.
      if (about != nullptr) seen.out_of_date = FactsOf(about);
      break;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      seen.name_mismatch = true;
      break;
    default:
      if (seen.untrusted.empty()) seen.untrusted = X509_verify_cert_error_string(error);
  }
  return 1;
}

absl::Status TlsStream::Flush(const Deadline& deadline) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(to_peer_, &data);  // NOLINT: OpenSSL's type
  if (size <= 0) return absl::OkStatus();
  const absl::Status status =
      below_->Send(absl::string_view(data, static_cast<size_t>(size)), deadline);
  BIO_reset(to_peer_);
  return status;
}

absl::Status TlsStream::Feed(const Deadline& deadline) {
  DISTRO_ASSIGN_OR_RETURN(const std::string bytes, below_->Receive(kReadBytes, deadline));
  if (bytes.empty()) return absl::OutOfRangeError("the connection was closed");
  received_ += bytes.size();
  if (received_ > kMaxReceivedBytes)
    return absl::UnavailableError("the peer sends too much before it answers");
  if (seen_.first_bytes.size() < kGreetingBytes)
    seen_.first_bytes.append(bytes, 0, kGreetingBytes - seen_.first_bytes.size());
  BIO_write(from_peer_, bytes.data(), static_cast<int>(bytes.size()));
  return absl::OkStatus();
}

template <typename Step>
absl::StatusOr<int> TlsStream::Pump(const Step& step, const Deadline& deadline) {
  while (true) {
    ERR_clear_error();
    const int result = step();
    const int error = SSL_get_error(ssl_.get(), result);
    const absl::Status flushed = Flush(deadline);
    if (result > 0) return flushed.ok() ? absl::StatusOr<int>(result) : flushed;
    if (error == SSL_ERROR_ZERO_RETURN) return 0;
    if (error != SSL_ERROR_WANT_READ) {
      const bool alert = IsAlert(ERR_peek_last_error());
      const std::string words = TakeError();
      return alert ? absl::UnauthenticatedError(words) : absl::InternalError(words);
    }
    DISTRO_RETURN_IF_ERROR(flushed);
    DISTRO_RETURN_IF_ERROR(Feed(deadline));
  }
}

TlsHandshake TlsStream::Handshake(const Deadline& deadline) {
  using Result = TlsHandshake::Result;
  seen_.status = SetUp();
  if (!seen_.status.ok()) return seen_;
  const absl::Status status =
      Pump([this] { return SSL_do_handshake(ssl_.get()); }, deadline).status();
  const bool speaks_tls = GreetingOf(seen_.first_bytes) == Greeting::kTls;
  const bool refused = !seen_.untrusted.empty() || seen_.name_mismatch || seen_.out_of_date;
  seen_.error = std::string(status.message());
  if (status.ok()) {
    const unsigned char* alpn = nullptr;
    unsigned int size = 0;
    SSL_get0_alpn_selected(ssl_.get(), &alpn, &size);
    seen_.alpn.assign(reinterpret_cast<const char*>(alpn), size);
    seen_.version = SSL_get_version(ssl_.get());
    seen_.result = Result::kDone;
  } else if (refused) {
    seen_.result = Result::kRefusedByUs;
  } else if (absl::IsUnauthenticated(status)) {
    seen_.result = Result::kRefusedByPeer;
  } else if (!speaks_tls && !absl::IsDeadlineExceeded(status) && !absl::IsCancelled(status)) {
    seen_.result = Result::kNoTls;
  } else {
    seen_.status = absl::IsInternal(status)
                       ? absl::UnavailableError(absl::StrCat("TLS fails: ", status.message()))
                       : status;
  }
  return seen_;
}

absl::Status TlsStream::Send(absl::string_view bytes, const Deadline& deadline) {
  return Pump([&] { return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())); },
              deadline)
      .status();
}

absl::StatusOr<std::string> TlsStream::Receive(size_t limit, const Deadline& deadline) {
  std::string bytes(limit, '\0');
  const absl::StatusOr<int> received = Pump(
      [&] { return SSL_read(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())); }, deadline);
  if (absl::IsOutOfRange(received.status())) return std::string();
  DISTRO_RETURN_IF_ERROR(received.status());
  bytes.resize(static_cast<size_t>(*received));
  return bytes;
}

}  // namespace distro
