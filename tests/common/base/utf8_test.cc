#include "common/base/utf8.h"

#include <optional>

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

}  // namespace
}  // namespace distro
