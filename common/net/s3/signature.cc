#include "common/net/s3/signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/checksum.h"

namespace distro {
namespace {

constexpr absl::string_view kAlgorithm = "AWS4-HMAC-SHA256";

std::string HmacSha256(absl::string_view key, absl::string_view text) {
  std::string mac(sizeof(Sha256Digest), '\0');
  unsigned int bytes = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(mac.data()), &bytes);
  return mac;
}

std::string SigningKey(const S3Credentials& credentials, absl::string_view day,
                       absl::string_view region) {
  const std::string of_day = HmacSha256(absl::StrCat("AWS4", credentials.secret_key), day);
  return HmacSha256(HmacSha256(HmacSha256(of_day, region), "s3"), "aws4_request");
}

}  // namespace

std::string UriEncode(absl::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ||
                       c == '_' || c == '~';
    if (plain) {
      encoded += c;
    } else {
      absl::StrAppendFormat(&encoded, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::string EncodedQuery(const S3Request& request) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& [name, value] : request.query)
    pairs.emplace_back(UriEncode(name), UriEncode(value));
  std::ranges::sort(pairs);
  return absl::StrJoin(pairs, "&", absl::PairFormatter("="));
}

HttpHeaders Sign(const S3Request& request, const S3Credentials& credentials,
                 absl::string_view region, absl::Time now) {
  const absl::TimeZone utc = absl::UTCTimeZone();
  const std::string time = absl::FormatTime("%Y%m%dT%H%M%SZ", now, utc);
  const std::string day = time.substr(0, 8);
  HttpHeaders headers = request.headers;
  headers.emplace_back("x-amz-content-sha256", request.content_sha256);
  headers.emplace_back("x-amz-date", time);
  if (!credentials.session_token.empty())
    headers.emplace_back("x-amz-security-token", credentials.session_token);

  HttpHeaders canonical{{"host", std::string(request.host)}};
  for (const auto& [name, value] : headers)
    canonical.emplace_back(absl::AsciiStrToLower(name), absl::StripAsciiWhitespace(value));
  std::ranges::sort(canonical);
  std::string lines;
  std::vector<std::string> names;
  for (const auto& [name, value] : canonical) {
    absl::StrAppend(&lines, name, ":", value, "\n");
    names.push_back(name);
  }
  const std::string signed_headers = absl::StrJoin(names, ";");
  const std::string what =
      absl::StrJoin({std::string(request.method), std::string(request.path), EncodedQuery(request),
                     lines, signed_headers, std::string(request.content_sha256)},
                    "\n");
  const std::string scope = absl::StrCat(day, "/", std::string(region), "/s3/aws4_request");
  const std::string to_sign =
      absl::StrCat(kAlgorithm, "\n", time, "\n", scope, "\n", ToHex(Sha256(what)));
  headers.emplace_back("Authorization",
                       absl::StrCat(kAlgorithm, " Credential=", credentials.access_key, "/", scope,
                                    ",SignedHeaders=", signed_headers, ",Signature=",
                                    absl::BytesToHexString(HmacSha256(
                                        SigningKey(credentials, day, region), to_sign))));
  return headers;
}

}  // namespace distro
