// Certificates that common/net/security does not issue: of other keys, signatures, times and
// purposes.
#pragma once

#include <openssl/evp.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/net/security/openssl.h"

namespace distro::testing {

using Extension = std::pair<int, const char*>;  // NID, and its value as in openssl.cnf

struct IssuedOptions {
  int rsa_bits = 0;  // 0: EC P-256
  const EVP_MD* digest = EVP_sha256();
  std::vector<Extension> extensions;
  absl::Duration valid = absl::Hours(1);
};

struct IssuedCertificate {
  openssl::Owned<X509> cert;
  openssl::Owned<EVP_PKEY> key;

  std::string CertPem() const;
  // `passphrase` null: in clear.
  std::string KeyPem(const char* passphrase = nullptr) const;
};

// `issuer` null: signs itself. The name is in the subject only.
IssuedCertificate Issue(const IssuedCertificate* issuer, const char* name,
                        const IssuedOptions& options);

}  // namespace distro::testing
