#include "common/base/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

// Of a whole, valid character.
uint32_t CodePoint(absl::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(character[i]); };
  if (character.size() == 1) return byte(0);
  uint32_t value = byte(0) & (0xFF >> (character.size() + 1));
  for (size_t i = 1; i < character.size(); ++i) value = value << 6 | (byte(i) & 0x3F);
  return value;
}

// Ranges of characters that are escaped, ascending: Unicode's categories Cc, Cf, Zl and Zp, and
// fillers that have no glyph. Emoji's variation selectors (U+FE00 to U+FE0F) are not here.
constexpr struct {
  uint32_t first, last;
} kHidden[] = {{0x00, 0x1F},       {0x7F, 0x9F},       {0xAD, 0xAD},       {0x34F, 0x34F},
               {0x600, 0x605},     {0x61C, 0x61C},     {0x6DD, 0x6DD},     {0x70F, 0x70F},
               {0x890, 0x891},     {0x8E2, 0x8E2},     {0x115F, 0x1160},   {0x17B4, 0x17B5},
               {0x180B, 0x180F},   {0x200B, 0x200F},   {0x2028, 0x202E},   {0x2060, 0x206F},
               {0x3164, 0x3164},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},   {0xFFF0, 0xFFFB},
               {0x110BD, 0x110BD}, {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3},
               {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF}};

bool IsHidden(uint32_t code) {
  const auto* range =
      std::ranges::lower_bound(kHidden, code, {}, [](const auto& r) { return r.last; });
  return range != std::end(kHidden) && code >= range->first;
}

std::string Escaped(uint32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\t') return "\\t";
  if (code == '\r') return "\\r";
  if (code < 0x20) return absl::StrFormat("\\x%02x", code);
  if (code < 0x10000) return absl::StrFormat("\\u%04x", code);
  return absl::StrFormat("\\u%04x\\u%04x", 0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF));
}

// Appends the first character of `text` as it is shown; returns its length.
size_t AppendShown(absl::string_view text, bool keep_line_feed, std::string* shown) {
  const size_t length = CharacterLength(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  if (length == 0) {
    absl::StrAppendFormat(shown, "\\x%02x", static_cast<uint8_t>(text[0]));
    return 1;
  }
  const absl::string_view character = text.substr(0, length);
  const uint32_t code = CodePoint(character);
  if (!IsHidden(code) || (keep_line_feed && code == '\n')) {
    absl::StrAppend(shown, character);
  } else {
    absl::StrAppend(shown, Escaped(code));
  }
  return length;
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

std::string ShownText(absl::string_view text, size_t max_bytes) {
  std::string shown;
  for (size_t i = 0; i < text.size();) {
    const size_t before = shown.size();
    i += AppendShown(text.substr(i), /*keep_line_feed=*/false, &shown);
    if (shown.size() <= max_bytes) continue;
    shown.resize(before);
    absl::StrAppend(&shown, "... (", text.size(), " bytes)");
    break;
  }
  return shown;
}

std::string ShownLines(absl::string_view text) {
  std::string shown;
  while (!text.empty()) text.remove_prefix(AppendShown(text, /*keep_line_feed=*/true, &shown));
  return shown;
}

}  // namespace distro
