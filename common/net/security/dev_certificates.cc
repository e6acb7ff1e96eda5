#include "common/net/security/dev_certificates.h"

#include <arpa/inet.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/net/security/openssl.h"

namespace distro {
namespace {

using openssl::Bytes;
using openssl::Owned;

// Name and value of an X.509 extension, as in openssl.cnf.
using Extensions = std::vector<std::pair<int, std::string>>;

struct Issuer {
  Owned<X509> cert;
  Owned<EVP_PKEY> key;
};

absl::Status Refused(absl::string_view what) {
  ERR_clear_error();
  return absl::InternalError(absl::StrCat("certificate: OpenSSL refuses ", what));
}

std::string Text(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);  // NOLINT: OpenSSL's type
  return std::string(data, static_cast<size_t>(size));
}

absl::StatusOr<Issuer> ParseCa(const KeyedCertificate& ca) {
  Issuer issuer;
  issuer.cert.reset(PEM_read_bio_X509(Bytes(ca.cert).get(), nullptr, nullptr, nullptr));
  issuer.key.reset(PEM_read_bio_PrivateKey(Bytes(ca.key).get(), nullptr, nullptr, nullptr));
  if (issuer.cert != nullptr && issuer.key != nullptr &&
      X509_check_private_key(issuer.cert.get(), issuer.key.get()) == 1) {
    return issuer;
  }
  ERR_clear_error();
  return absl::InvalidArgumentError("the CA's certificate and key cannot be read, or are no pair");
}

bool SetSerial(X509* certificate) {
  unsigned char serial[16];
  if (RAND_bytes(serial, sizeof(serial)) != 1) return false;
  serial[0] &= 0x7f;
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> number(
      BN_bin2bn(serial, sizeof(serial), nullptr), BN_free);
  return number != nullptr &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool AddEntry(X509_NAME* subject, const char* field, absl::string_view value) {
  return X509_NAME_add_entry_by_txt(subject, field, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(value.data()),
                                    static_cast<int>(value.size()), -1, 0) == 1;
}

bool AddExtensions(X509* issuer, X509* certificate, const Extensions& extensions) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  for (const auto& [kind, value] : extensions) {
    const Owned<X509_EXTENSION> extension(
        X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
    if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) return false;
  }
  return true;
}

bool SetTimes(X509* certificate, const Validity& validity) {
  return ASN1_TIME_set(X509_getm_notBefore(certificate), absl::ToTimeT(validity.from)) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate),
                       absl::ToTimeT(validity.from + validity.valid)) != nullptr;
}

absl::StatusOr<KeyedCertificate> ToPem(X509* certificate, EVP_PKEY* key) {
  const Owned<BIO> cert_pem(BIO_new(BIO_s_mem()));
  const Owned<BIO> key_pem(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(cert_pem.get(), certificate) != 1 ||
      PEM_write_bio_PrivateKey(key_pem.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return Refused("to write PEM");
  }
  return KeyedCertificate{.cert = Text(cert_pem.get()), .key = Text(key_pem.get())};
}

// `issuer` null: signs itself.
absl::StatusOr<KeyedCertificate> Make(const Issuer* issuer, absl::string_view name,
                                      absl::string_view role, const Validity& validity,
                                      const Extensions& extensions) {
  const Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  const Owned<X509> made(X509_new());
  X509* const certificate = made.get();
  if (key == nullptr || certificate == nullptr) return Refused("a new key");
  X509_NAME* const subject = X509_get_subject_name(certificate);
  if (X509_set_version(certificate, X509_VERSION_3) != 1 || !SetSerial(certificate) ||
      !SetTimes(certificate, validity) || !AddEntry(subject, "CN", name) ||
      (!role.empty() && !AddEntry(subject, "OU", role)) ||
      X509_set_pubkey(certificate, key.get()) != 1) {
    return Refused(absl::StrCat("the subject ", name));
  }
  X509* const parent = issuer == nullptr ? certificate : issuer->cert.get();
  if (X509_set_issuer_name(certificate, X509_get_subject_name(parent)) != 1 ||
      !AddExtensions(parent, certificate, extensions) ||
      X509_sign(certificate, issuer == nullptr ? key.get() : issuer->key.get(), EVP_sha256()) ==
          0) {
    return Refused(absl::StrCat("the extensions or the signature of ", name));
  }
  return ToPem(certificate, key.get());
}

std::string AlternativeName(const std::string& host) {
  unsigned char address[sizeof(in6_addr)];
  const bool is_ip = inet_pton(AF_INET, host.c_str(), address) == 1 ||
                     inet_pton(AF_INET6, host.c_str(), address) == 1;
  return absl::StrCat(is_ip ? "IP:" : "DNS:", host);
}

}  // namespace

absl::StatusOr<KeyedCertificate> MakeCa(const Validity& validity) {
  return Make(nullptr, "distro development CA", "", validity,
              {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
               {NID_key_usage, "critical,keyCertSign,cRLSign"},
               {NID_subject_key_identifier, "hash"}});
}

absl::StatusOr<KeyedCertificate> IssueServerCertificate(const KeyedCertificate& ca,
                                                        const std::vector<std::string>& hosts,
                                                        const Validity& validity) {
  if (hosts.empty()) return absl::InvalidArgumentError("certificate: no host");
  DISTRO_ASSIGN_OR_RETURN(const Issuer issuer, ParseCa(ca));
  std::vector<std::string> names;
  for (const std::string& host : hosts) {
    if (host.empty() || (host.find_first_of(",:= ") != std::string::npos &&
                         !absl::StartsWith(AlternativeName(host), "IP:"))) {
      return absl::InvalidArgumentError(
          absl::StrCat("certificate: \"", host, "\" is not a name or address"));
    }
    names.push_back(AlternativeName(host));
  }
  return Make(&issuer, hosts.front().substr(0, 64), "", validity,
              {{NID_basic_constraints, "critical,CA:FALSE"},
               {NID_key_usage, "critical,digitalSignature"},
               {NID_ext_key_usage, "serverAuth"},
               {NID_subject_alt_name, absl::StrJoin(names, ",")}});
}

absl::StatusOr<KeyedCertificate> IssueClientCertificate(const KeyedCertificate& ca,
                                                        absl::string_view name,
                                                        absl::string_view role,
                                                        const Validity& validity) {
  DISTRO_ASSIGN_OR_RETURN(const Issuer issuer, ParseCa(ca));
  return Make(&issuer, name, role, validity,
              {{NID_basic_constraints, "critical,CA:FALSE"},
               {NID_key_usage, "critical,digitalSignature"},
               {NID_ext_key_usage, "clientAuth"}});
}

}  // namespace distro
