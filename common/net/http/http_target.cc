#include "common/net/http/http_target.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace distro {
namespace {

std::string Decoded(absl::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && text.size() - i > 2 &&
                        absl::ascii_isxdigit(text[i + 1]) && absl::ascii_isxdigit(text[i + 2]);
    if (escape) {
      decoded += absl::HexStringToBytes(text.substr(i + 1, 2));
      i += 2;
    } else {
      decoded += text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

}  // namespace

absl::StatusOr<HttpRequest> ParseHttpTarget(absl::string_view target) {
  if (!absl::StartsWith(target, "/")) {
    return absl::InvalidArgumentError("the request's target does not begin with a slash");
  }
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(target, absl::MaxSplits('?', 1));
  HttpRequest request{.path = std::string(parts.first), .query = {}};
  for (const absl::string_view field : absl::StrSplit(parts.second, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(field, absl::MaxSplits('=', 1));
    request.query.emplace(Decoded(pair.first), Decoded(pair.second));
  }
  return request;
}

}  // namespace distro
