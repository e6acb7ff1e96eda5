// OpenSSL's objects with owners, for this folder.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>

#include "absl/strings/string_view.h"

namespace distro::openssl {

struct Freed {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* end) const { SSL_free(end); }
};
template <typename T>
using Owned = std::unique_ptr<T, Freed>;

// Reads `pem`, which outlives it.
inline Owned<BIO> Bytes(absl::string_view pem) {
  return Owned<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

}  // namespace distro::openssl
