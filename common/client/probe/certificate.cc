#include "common/client/probe/certificate.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "common/base/utf8.h"

namespace distro {
namespace {

constexpr size_t kMaxNames = 16;
constexpr size_t kMaxNameBytes = 253;  // of a host name

std::string Shown(absl::string_view text) { return ShownText(text, kMaxNameBytes); }

absl::string_view BytesOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm fields = {};
  if (ASN1_TIME_to_tm(time, &fields) != 1) return absl::InfinitePast();
  return absl::FromTM(fields, absl::UTCTimeZone());
}

std::string AddressText(absl::string_view bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  if (bytes.size() == 4) inet_ntop(AF_INET, bytes.data(), text, sizeof(text));
  if (bytes.size() == 16) inet_ntop(AF_INET6, bytes.data(), text, sizeof(text));
  return text;
}

std::vector<std::string> AlternativeNames(const X509* certificate) {
  std::vector<std::string> found;
  auto* const names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  const auto free = absl::MakeCleanup([names] { GENERAL_NAMES_free(names); });
  for (int i = 0; i < sk_GENERAL_NAME_num(names) && found.size() < kMaxNames; ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names, i);
    if (name->type == GEN_DNS) found.push_back(Shown(BytesOf(name->d.dNSName)));
    if (name->type == GEN_IPADD) found.push_back(AddressText(BytesOf(name->d.iPAddress)));
  }
  ERR_clear_error();
  return found;
}

}  // namespace

std::string NameText(const X509_NAME* name) {
  const int index = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
  if (index >= 0) {
    return Shown(BytesOf(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, index))));
  }
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), BIO_free);
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);  // NOLINT: OpenSSL's type
  return size > 0 ? Shown({data, static_cast<size_t>(size)}) : "(no name)";
}

CertificateFacts FactsOf(const X509* certificate) {
  return {.subject = NameText(X509_get_subject_name(certificate)),
          .issuer = NameText(X509_get_issuer_name(certificate)),
          .names = AlternativeNames(certificate),
          .not_before = TimeOf(X509_get0_notBefore(certificate)),
          .not_after = TimeOf(X509_get0_notAfter(certificate))};
}

}  // namespace distro
