#include "common/net/security/tls_files.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/net/security/openssl.h"
#include "common/net/security/tls_trial.h"

namespace distro {
namespace {

constexpr uint64_t kMaxPemBytes = 1 << 20;

using openssl::Bytes;
using openssl::Owned;
using Certificates = std::vector<Owned<X509>>;

// Refuses a key with a passphrase, because no user can enter it.
int NoPassphrase(char*, int, int, void*) { return 0; }

Owned<X509> NextCertificate(BIO* bio) {
  Owned<X509> certificate(PEM_read_bio_X509(bio, nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  return certificate;
}

absl::Status NoPem(absl::string_view path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": holds no ", what, " in PEM"));
}

// All of a file, in their order. `what`: of the error if there is none.
absl::StatusOr<Certificates> ParseCertificates(absl::string_view path, absl::string_view pem,
                                               absl::string_view what) {
  const Owned<BIO> bio = Bytes(pem);
  Certificates certificates;
  for (;;) {
    Owned<X509> next(PEM_read_bio_X509_AUX(bio.get(), nullptr, NoPassphrase, nullptr));
    const bool end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    if (next == nullptr && certificates.empty()) return NoPem(path, what);
    if (next == nullptr && end) return certificates;
    if (next == nullptr)
      return absl::InvalidArgumentError(absl::StrCat(path, ": certificate ",
                                                     certificates.size() + 1,
                                                     " in it is damaged; copy the file again"));
    certificates.push_back(std::move(next));
  }
}

absl::StatusOr<Owned<EVP_PKEY>> ParseKey(const std::string& path, absl::string_view pem) {
  const Owned<BIO> bio = Bytes(pem);
  Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  if (key != nullptr) return key;
  if (absl::StrContains(pem, "ENCRYPTED")) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": the key has a passphrase, which nobody can enter here; write it "
                     "without one: openssl pkey -in FILE -out NEW"));
  }
  return NoPem(path, "private key");
}

absl::Time TimeOf(const ASN1_TIME* time, absl::Time otherwise) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return otherwise;
  return absl::FromTM(parts, absl::UTCTimeZone());
}

absl::Status ReadCa(const std::string& path, TlsMaterial* material) {
  DISTRO_ASSIGN_OR_RETURN(material->ca, ReadTextFile(path, kMaxPemBytes));
  DISTRO_ASSIGN_OR_RETURN(const Certificates all,
                          ParseCertificates(path, material->ca, "CA certificate"));
  absl::Status status;
  for (const Owned<X509>& ca : all) {
    status = CheckCaStrength(ca.get());
    if (status.ok()) return status;
  }
  return Annotate(status, path);
}

bool IsPair(X509* certificate, EVP_PKEY* key) {
  const bool fits = X509_check_private_key(certificate, key) == 1;
  ERR_clear_error();
  return fits;
}

absl::Status CheckPair(const TlsFiles& files, const Certificates& chain, EVP_PKEY* key) {
  if (IsPair(chain.front().get(), key)) return absl::OkStatus();
  for (size_t i = 1; i < chain.size(); ++i) {
    if (!IsPair(chain[i].get(), key)) continue;
    return absl::InvalidArgumentError(absl::StrCat(files.cert, ": the certificate of the key in ",
                                                   files.key, " is number ", i + 1,
                                                   " in it; put it first, and its CAs behind it"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(files.key, ": is not the key of the certificate in ", files.cert));
}

// Clients compare it with the host that they connect to.
absl::Status CheckHasName(X509* certificate) {
  if (X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1) >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the certificate has no subjectAltName, so it is for no host; issue one with DNS:NAME or "
      "IP:ADDRESS for each address that clients connect to");
}

absl::Status ReadIdentity(const TlsFiles& files, TlsSide side, TlsMaterial* material) {
  DISTRO_ASSIGN_OR_RETURN(material->cert, ReadTextFile(files.cert, kMaxPemBytes));
  DISTRO_ASSIGN_OR_RETURN(material->key, ReadTextFile(files.key, kMaxPemBytes));
  DISTRO_ASSIGN_OR_RETURN(const Certificates chain,
                          ParseCertificates(files.cert, material->cert, "certificate"));
  DISTRO_ASSIGN_OR_RETURN(const Owned<EVP_PKEY> key, ParseKey(files.key, material->key));
  DISTRO_RETURN_IF_ERROR(CheckPair(files, chain, key.get()));
  DISTRO_RETURN_IF_ERROR(Annotate(TryHandshake(side, chain, key.get()), files.cert));
  if (side == TlsSide::kServer)
    DISTRO_RETURN_IF_ERROR(Annotate(CheckHasName(chain.front().get()), files.cert));
  for (size_t i = 0; i < std::min<size_t>(chain.size(), 2); ++i) {
    const X509* const certificate = chain[i].get();
    material->begin =
        std::max(material->begin, TimeOf(X509_get0_notBefore(certificate), absl::InfiniteFuture()));
    material->expiry =
        std::min(material->expiry, TimeOf(X509_get0_notAfter(certificate), absl::InfinitePast()));
  }
  return absl::OkStatus();
}

// The only entry of that kind.
absl::StatusOr<std::string> OnlyEntry(X509_NAME* subject, int kind, absl::string_view what) {
  const int index = X509_NAME_get_index_by_NID(subject, kind, -1);
  if (index < 0 || X509_NAME_get_index_by_NID(subject, kind, index) >= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the certificate's subject must have one ", what));
  }
  const ASN1_STRING* text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, index));
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, text);
  if (size < 0) {
    ERR_clear_error();
    return absl::InvalidArgumentError(absl::StrCat("the certificate's ", what, " is not text"));
  }
  std::string entry(reinterpret_cast<const char*>(utf8), static_cast<size_t>(size));
  OPENSSL_free(utf8);
  return entry;
}

}  // namespace

absl::StatusOr<TlsMaterial> ReadTlsFiles(const TlsFiles& files, TlsSide side) {
  if (files.cert.empty() != files.key.empty())
    return absl::InvalidArgumentError(
        "a certificate without its key, or a key without certificate");
  TlsMaterial material;
  if (!files.ca.empty()) DISTRO_RETURN_IF_ERROR(ReadCa(files.ca, &material));
  if (!files.cert.empty()) DISTRO_RETURN_IF_ERROR(ReadIdentity(files, side, &material));
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
