#include "common/base/utf8.h"

#include <cstdint>
#include <cstring>

#include "absl/strings/strip.h"

namespace distro {
namespace {

// The length of the character at the start of the `left` bytes at `p`; 0 if it is not valid. RFC
// 3629, section 4: after E0, ED, F0 and F4 the first continuation byte has a narrower range.
size_t CharacterLength(const uint8_t* p, size_t left) {
  const uint8_t lead = p[0];
  if (lead < 0x80) return 1;
  const size_t length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0 || length > left) return 0;
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (p[1] < low || p[1] > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((p[i] & 0xC0) != 0x80) return 0;
  }
  return length;
}

bool EightAsciiBytes(const uint8_t* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof(word));
  return (word & 0x8080808080808080) == 0;
}

}  // namespace

size_t ValidUtf8Prefix(absl::string_view bytes) {
  const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t i = 0;
  while (i < bytes.size()) {
    if (bytes.size() - i >= 8 && EightAsciiBytes(p + i)) {
      i += 8;
      continue;
    }
    const size_t length = CharacterLength(p + i, bytes.size() - i);
    if (length == 0) break;
    i += length;
  }
  return i;
}

std::string ReplaceInvalidUtf8(absl::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t valid = ValidUtf8Prefix(bytes);
    text.append(bytes.data(), valid);
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    text.append("\xEF\xBF\xBD");
    bytes.remove_prefix(1);
  }
  return text;
}

absl::string_view WithoutByteOrderMark(absl::string_view text) {
  return absl::StripPrefix(text, "\xEF\xBB\xBF");
}

bool IsUtf16(absl::string_view bytes) {
  if (bytes.size() < 2) return false;
  const absl::string_view first = bytes.substr(0, 2);
  return first == "\xFF\xFE" || first == "\xFE\xFF" || (first[0] == '\0') != (first[1] == '\0');
}

}  // namespace distro
