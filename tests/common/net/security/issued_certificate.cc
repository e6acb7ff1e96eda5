#include "tests/common/net/security/issued_certificate.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#include "absl/time/clock.h"

namespace distro::testing {
namespace {

std::string Text(BIO* bio) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

void AddExtensions(X509* issuer, X509* certificate, const std::vector<Extension>& extensions) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  for (const auto& [kind, value] : extensions) {
    const openssl::Owned<X509_EXTENSION> extension(
        X509V3_EXT_conf_nid(nullptr, &context, kind, value));
    EXPECT_NE(extension, nullptr) << value;
    EXPECT_EQ(X509_add_ext(certificate, extension.get(), -1), 1);
  }
}

}  // namespace

std::string IssuedCertificate::CertPem() const {
  const openssl::Owned<BIO> pem(BIO_new(BIO_s_mem()));
  EXPECT_EQ(PEM_write_bio_X509(pem.get(), cert.get()), 1);
  return Text(pem.get());
}

std::string IssuedCertificate::KeyPem(const char* passphrase) const {
  const openssl::Owned<BIO> pem(BIO_new(BIO_s_mem()));
  EXPECT_EQ(PEM_write_bio_PKCS8PrivateKey(
                pem.get(), key.get(), passphrase == nullptr ? nullptr : EVP_aes_256_cbc(),
                passphrase, passphrase == nullptr ? 0 : 4, nullptr, nullptr),
            1);
  return Text(pem.get());
}

IssuedCertificate Issue(const IssuedCertificate* issuer, const char* name,
                        const IssuedOptions& options) {
  IssuedCertificate made;
  made.key.reset(options.rsa_bits > 0 ? EVP_RSA_gen(static_cast<unsigned>(options.rsa_bits))
                                      : EVP_EC_gen("P-256"));
  made.cert.reset(X509_new());
  X509* const certificate = made.cert.get();
  X509* const parent = issuer == nullptr ? certificate : issuer->cert.get();
  X509_set_version(certificate, X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  ASN1_TIME_set(X509_getm_notAfter(certificate), absl::ToTimeT(absl::Now() + options.valid));
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
  X509_set_issuer_name(certificate, X509_get_subject_name(parent));
  X509_set_pubkey(certificate, made.key.get());
  AddExtensions(parent, certificate, options.extensions);
  EXPECT_GT(X509_sign(certificate, issuer == nullptr ? made.key.get() : issuer->key.get(),
                      options.digest),
            0);
  return made;
}

}  // namespace distro::testing
