// Tries a certificate in a TLS handshake inside the process, with OpenSSL's settings of this
// machine, as gRPC will use it. So a certificate that no peer accepts is found before anything says
// that it is ready. Not tried: dates, and whether a peer knows the CA. Thread-safe; no network.
#pragma once

#include <openssl/x509.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/net/security/openssl.h"
#include "common/net/security/tls_files.h"

namespace distro {

// `side` shows `chain`, which begins with the certificate of `key`. InvalidArgument, without the
// file's name: why OpenSSL does not use it, or why a peer refuses it, and what to do.
absl::Status TryHandshake(TlsSide side, const std::vector<openssl::Owned<X509>>& chain,
                          EVP_PKEY* key);

// Whether peers may use `ca` to verify a certificate: as above.
absl::Status CheckCaStrength(X509* ca);

}  // namespace distro
