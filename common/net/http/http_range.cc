#include "common/net/http/http_range.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace distro {
namespace {

// Digits only: no sign, no space. nullopt also beyond 64 bits.
std::optional<uint64_t> ParseDigits(absl::string_view text) {
  uint64_t value = 0;
  const bool digits = std::ranges::all_of(text, [](char c) { return absl::ascii_isdigit(c); });
  if (text.empty() || !digits || !absl::SimpleAtoi(text, &value)) return std::nullopt;
  return value;
}

}  // namespace

std::optional<ByteRange> ParseRange(absl::string_view header, uint64_t bytes) {
  if (!absl::ConsumePrefix(&header, "bytes=")) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(header, absl::MaxSplits('-', 1));
  if (ends.first.size() == header.size()) return std::nullopt;  // there is no "-"
  const std::optional<uint64_t> first = ParseDigits(ends.first);
  const std::optional<uint64_t> last = ParseDigits(ends.second);
  if (ends.first.empty() && last) return ByteRange{bytes - std::min(*last, bytes), bytes};
  if (!first || (!last && !ends.second.empty())) return std::nullopt;
  if (last && *last < *first) return std::nullopt;
  const uint64_t begin = std::min(*first, bytes);
  return ByteRange{begin, last && *last < bytes ? *last + 1 : bytes};
}

std::string ContentRange(const ByteRange& range, uint64_t bytes) {
  if (range.begin == range.end) return absl::StrCat("bytes */", bytes);
  return absl::StrCat("bytes ", range.begin, "-", range.end - 1, "/", bytes);
}

std::optional<uint64_t> BeginOfContentRange(absl::string_view value) {
  if (!absl::ConsumePrefix(&value, "bytes ")) return std::nullopt;
  return ParseDigits(value.substr(0, value.find('-')));
}

}  // namespace distro
