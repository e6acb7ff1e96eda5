// Reads and checks certificates and keys in PEM files before they are used, so that an error names
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
  // When the first certificate of `cert` expires; InfiniteFuture without a certificate.
  absl::Time expiry = absl::InfiniteFuture();
};

// InvalidArgument: a file above 1 MiB or without PEM of its kind, a key that does not match the
// certificate, a certificate without a key. NotFound, PermissionDenied: as ReadFile. All messages
// name the file; none contains bytes of a key.
absl::StatusOr<TlsMaterial> ReadTlsFiles(const TlsFiles& files);

// The identity in a client certificate (docs/security.md).
struct CertificateSubject {
  std::string name;  // CN
  std::string role;  // OU
};

// Of the first certificate in `pem`. InvalidArgument: no certificate, or not exactly one CN and one
// OU.
absl::StatusOr<CertificateSubject> SubjectOf(absl::string_view pem);

}  // namespace distro
