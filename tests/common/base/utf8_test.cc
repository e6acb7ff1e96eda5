#include "common/base/utf8.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

// The first character's code point and length by the definition: the shortest form of a value that
// is no surrogate.
std::optional<size_t> ReferenceLength(absl::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(s[i]); };
  for (size_t length = 1; length <= 4 && length <= s.size(); ++length) {
    static constexpr uint8_t kLead[] = {0x00, 0xC0, 0xE0, 0xF0}, kMask[] = {0x80, 0xE0, 0xF0, 0xF8};
    static constexpr uint32_t kSmallest[] = {0, 0x80, 0x800, 0x10000};
    if ((byte(0) & kMask[length - 1]) != kLead[length - 1]) continue;
    uint32_t value = byte(0) & ~kMask[length - 1];
    for (size_t i = 1; i < length; ++i) {
      if ((byte(i) & 0xC0) != 0x80) return std::nullopt;
      value = value << 6 | (byte(i) & 0x3F);
    }
    const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
    if (value < kSmallest[length - 1] || value > 0x10FFFF || surrogate) return std::nullopt;
    return length;
  }
  return std::nullopt;
}

// Every pair of bytes, and every byte that decides a boundary in places three and four.
TEST(Utf8Test, AgreesWithTheDefinition) {
  const uint8_t edges[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF};
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      for (uint8_t third : edges) {
        for (uint8_t fourth : edges) {
          const char bytes[] = {static_cast<char>(first), static_cast<char>(second),
                                static_cast<char>(third), static_cast<char>(fourth)};
          for (size_t size = 1; size <= 4; ++size) {
            const absl::string_view text(bytes, size);
            size_t valid = 0;
            while (valid < size && ReferenceLength(text.substr(valid)))
              valid += *ReferenceLength(text.substr(valid));
            ASSERT_EQ(ValidUtf8Prefix(text), valid)
                << first << " " << second << " " << int{third} << " " << size;
          }
        }
      }
    }
  }
}

TEST(Utf8Test, FindsABadByteAfterManyGoodOnes) {
  for (size_t good = 0; good < 40; ++good) {
    const std::string text = std::string(good, 'x') + "\x80" + std::string(20, 'y');
    EXPECT_EQ(ValidUtf8Prefix(text), good);
    EXPECT_FALSE(IsValidUtf8(text));
  }
  EXPECT_TRUE(IsValidUtf8(std::string(100, 'x')));
  EXPECT_TRUE(IsValidUtf8(""));
}

TEST(Utf8Test, ReplacesOnlyWhatIsInvalid) {
  EXPECT_EQ(ReplaceInvalidUtf8("a\xC3\xA4"
                               "b"),
            "a\xC3\xA4"
            "b");
  EXPECT_EQ(ReplaceInvalidUtf8("a\xFF\xC3"), "a\xEF\xBF\xBD\xEF\xBF\xBD");
}

// What a terminal obeys, what turns the order of what is read, and what is not seen.
TEST(ShownTextTest, EscapesWhatIsNotSeenForWhatItIs) {
  const std::pair<absl::string_view, absl::string_view> kCases[] = {
      {"\x1b[2J", "\\x1b[2J"},
      {"a\nb\tc\rd", "a\\nb\\tc\\rd"},
      {absl::string_view("\0", 1), "\\x00"},
      {"\x7f", "\\u007f"},
      {"\u0080", "\\u0080"},
      {"\u009b", "\\u009b"},
      {"\u009f", "\\u009f"},
      {"\u00ad", "\\u00ad"},
      {"\u061c", "\\u061c"},
      {"\u200b", "\\u200b"},
      {"\u200f", "\\u200f"},
      {"\u2028\u2029", "\\u2028\\u2029"},
      {"\u202a\u202e", "\\u202a\\u202e"},
      {"\u2066\u2069", "\\u2066\\u2069"},
      {"\ufeff", "\\ufeff"},
      {"\U000e0041", "\\udb40\\udc41"},
      {"\x9b[2J", "\\x9b[2J"},              // a byte that is no UTF-8
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},  // a surrogate
      {"\xe2\x80", "\\xe2\\x80"},           // the beginning of a character
  };
  for (const auto& [text, shown] : kCases) {
    EXPECT_EQ(ShownText(text), shown);
    EXPECT_EQ(ShownText(absl::StrCat("a", text, "z")), absl::StrCat("a", shown, "z"));
  }
}

TEST(ShownTextTest, LeavesWhatIsSeen) {
  for (const char* text : {"", "a \"b\" 'c' \\ =", "Größe", "模型", "модель", "🙂", "\u00a0"})
    EXPECT_EQ(ShownText(text), text);
}

TEST(ShownTextTest, CutsAtACharacterAndSaysHowMuchThereWas) {
  EXPECT_EQ(ShownText(std::string(500, 'a')), std::string(500, 'a'));
  EXPECT_EQ(ShownText(std::string(900'000, 'a')), std::string(500, 'a') + "... (900000 bytes)");
  EXPECT_EQ(ShownText("abü", 3), "ab... (4 bytes)");
  EXPECT_EQ(ShownText("ab\nc", 3), "ab... (4 bytes)");
}

TEST(ShownTextTest, LinesStayLines) {
  EXPECT_EQ(ShownLines("a\n\u202eb\r\n"), "a\n\\u202eb\\r\n");
  EXPECT_EQ(ShownLines(std::string(9000, 'a')), std::string(9000, 'a'));
}

}  // namespace
}  // namespace distro
