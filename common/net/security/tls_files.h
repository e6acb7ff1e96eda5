// Reads and tries certificates and keys in PEM files before they are used, so that an error names
// the file instead of failing a later handshake. Pure functions of the files; thread-safe. No gRPC
// here.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace distro {

// First line of a certificate in PEM.
inline constexpr char kBeginCertificate[] = "-----BEGIN CERTIFICATE-----";

// Who shows the certificate.
enum class TlsSide { kClient, kServer };

// Paths; empty ones are not read.
struct TlsFiles {
  std::string ca = {};    // one or more CA certificates
  std::string cert = {};  // certificate, then the chain that leads to its CA
  std::string key = {};   // private key of the certificate
};

// The contents of the files.
struct TlsMaterial {
  std::string ca;
  std::string cert;
  std::string key;
  // The times at which both the first certificate of `cert` and the one behind it are valid;
  // without a certificate, always.
  absl::Time begin = absl::InfinitePast();
  absl::Time expiry = absl::InfiniteFuture();
};

// Of this side. Dates are not compared with a clock here.
//
// InvalidArgument: a file above 1 MiB or without PEM of its kind, one with a damaged certificate, a
// key with a passphrase or of another certificate, a certificate without a key, one that no TLS
// connection can use, a server's without a name, CAs that nobody may use. NotFound,
// PermissionDenied: as ReadFile. All messages name the file and what to do; none contains bytes of
// a key.
absl::StatusOr<TlsMaterial> ReadTlsFiles(const TlsFiles& files, TlsSide side);

// The identity in a client certificate (docs/security.md).
struct CertificateSubject {
  std::string name;  // CN
  std::string role;  // OU
};

// Of the first certificate in `pem`. InvalidArgument: no certificate, or not exactly one CN and one
// OU.
absl::StatusOr<CertificateSubject> SubjectOf(absl::string_view pem);

}  // namespace distro
