#include "common/security/tls_files.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstdint>
#include <ctime>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace distro {
namespace {

constexpr uint64_t kMaxPemBytes = 1 << 20;

struct Freed {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <typename T>
using Owned = std::unique_ptr<T, Freed>;

Owned<BIO> Bytes(absl::string_view pem) {
  return Owned<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// Refuses a key with a passphrase, because no user can enter it.
int NoPassphrase(char*, int, int, void*) { return 0; }

Owned<X509> NextCertificate(BIO* bio) {
  Owned<X509> certificate(PEM_read_bio_X509(bio, nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  return certificate;
}

Owned<EVP_PKEY> ParseKey(absl::string_view pem) {
  const Owned<BIO> bio = Bytes(pem);
  Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  return key;
}

absl::Status NoPem(absl::string_view path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": holds no ", what, " in PEM"));
}

absl::Time EndOf(const X509* certificate) {
  std::tm end = {};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) != 1) return absl::InfinitePast();
  return absl::FromTM(end, absl::UTCTimeZone());
}

absl::Status ReadCa(const std::string& path, TlsMaterial* material) {
  DISTRO_ASSIGN_OR_RETURN(material->ca, ReadTextFile(path, kMaxPemBytes));
  if (NextCertificate(Bytes(material->ca).get()) == nullptr) return NoPem(path, "CA certificate");
  return absl::OkStatus();
}

absl::Status ReadIdentity(const TlsFiles& files, TlsMaterial* material) {
  DISTRO_ASSIGN_OR_RETURN(material->cert, ReadTextFile(files.cert, kMaxPemBytes));
  DISTRO_ASSIGN_OR_RETURN(material->key, ReadTextFile(files.key, kMaxPemBytes));
  const Owned<X509> certificate = NextCertificate(Bytes(material->cert).get());
  if (certificate == nullptr) return NoPem(files.cert, "certificate");
  const Owned<EVP_PKEY> key = ParseKey(material->key);
  if (key == nullptr) return NoPem(files.key, "private key (without a passphrase)");
  const bool fits = X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat(files.key, ": is not the key of the certificate in ", files.cert));
  }
  material->expiry = EndOf(certificate.get());
  return absl::OkStatus();
}

// The only entry of that kind.
absl::StatusOr<std::string> OnlyEntry(X509_NAME* subject, int kind, absl::string_view what) {
  const int index = X509_NAME_get_index_by_NID(subject, kind, -1);
  if (index < 0 || X509_NAME_get_index_by_NID(subject, kind, index) >= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the certificate has none or several of ", what));
  }
  const ASN1_STRING* text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, index));
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, text);
  if (size < 0) {
    ERR_clear_error();
    return absl::InvalidArgumentError(absl::StrCat("the certificate's ", what, " is no text"));
  }
  std::string entry(reinterpret_cast<const char*>(utf8), static_cast<size_t>(size));
  OPENSSL_free(utf8);
  return entry;
}

}  // namespace

absl::StatusOr<TlsMaterial> ReadTlsFiles(const TlsFiles& files) {
  if (files.cert.empty() != files.key.empty())
    return absl::InvalidArgumentError(
        "a certificate without its key, or a key without certificate");
  TlsMaterial material;
  if (!files.ca.empty()) DISTRO_RETURN_IF_ERROR(ReadCa(files.ca, &material));
  if (!files.cert.empty()) DISTRO_RETURN_IF_ERROR(ReadIdentity(files, &material));
  return material;
}

absl::StatusOr<CertificateSubject> SubjectOf(absl::string_view pem) {
  const Owned<X509> certificate = NextCertificate(Bytes(pem).get());
  if (certificate == nullptr) return absl::InvalidArgumentError("no certificate in PEM");
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  CertificateSubject result;
  DISTRO_ASSIGN_OR_RETURN(result.name, OnlyEntry(subject, NID_commonName, "CN, the name"));
  DISTRO_ASSIGN_OR_RETURN(result.role,
                          OnlyEntry(subject, NID_organizationalUnitName, "OU, the role"));
  return result;
}

}  // namespace distro
