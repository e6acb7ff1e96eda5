// Creates certificates for development and tests: a CA, and certificates that it issues
// (docs/security.md). EC keys on P-256, SHA-256. Not for production: the CA's key is stored beside
// the certificates. No gRPC here.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace distro {

// PEM.
struct KeyedCertificate {
  std::string cert;
  std::string key;
};

// From `from` for `valid`.
struct Validity {
  absl::Time from;
  absl::Duration valid;
};

// Internal: OpenSSL refuses.
absl::StatusOr<KeyedCertificate> MakeCa(const Validity& validity);

// A server's certificate for its host names and IP addresses. InvalidArgument: there is none, or
// the CA cannot be read.
absl::StatusOr<KeyedCertificate> IssueServerCertificate(const KeyedCertificate& ca,
                                                        const std::vector<std::string>& hosts,
                                                        const Validity& validity);

// A client's: CN `name`, OU `role`. InvalidArgument: the CA cannot be read.
absl::StatusOr<KeyedCertificate> IssueClientCertificate(const KeyedCertificate& ca,
                                                        absl::string_view name,
                                                        absl::string_view role,
                                                        const Validity& validity);

}  // namespace distro
