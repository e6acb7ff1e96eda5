// Text as it comes from elsewhere, and names in upper case.
#include "worker/data/token_format.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/data/token_file.h"

namespace distro::worker {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

TEST(TokenFormatTest, LeavesOutByteOrderMark) {
  const std::string plain = "A text.\r\n", mark = "\xEF\xBB\xBF", marked = mark + plain;
  const auto tokens = FindTokens(marked, TokenFormat::kText);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->bytes, plain) << "line ends are content";
  EXPECT_EQ(*TokenSource::FromBytes(marked, TokenFormat::kText)->Fingerprint(),
            *TokenSource::FromBytes(plain, TokenFormat::kText)->Fingerprint());
  EXPECT_EQ(FindTokens(mark, TokenFormat::kText).status().message(), "holds no token");
  const std::string numbers = mark + "x";
  EXPECT_EQ(FindTokens(numbers, TokenFormat::kUint16)->bytes.size(), 4u) << "no text";
}

TEST(TokenFormatTest, TextInUtf16IsRefusedByName) {
  for (const std::string& text : {"\xFF\xFE\x41\0"s, "\xFE\xFF\0\x41"s, "A\0 \0"s}) {
    const absl::Status status = FindTokens(text, TokenFormat::kText).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("is UTF-16"));
  }
}

TEST(TokenFormatTest, NamesMayBeInUpperCase) {
  EXPECT_EQ(GuessTokenFormat("A.TXT", "").value(), TokenFormat::kText);
  EXPECT_EQ(GuessTokenFormat("A.Md", "").value(), TokenFormat::kText);
  EXPECT_EQ(GuessTokenFormat("A.U16", "").value(), TokenFormat::kUint16);
  EXPECT_EQ(GuessTokenFormat("A.U32", "").value(), TokenFormat::kUint32);
  EXPECT_EQ(GuessTokenFormat("A.BIN", "ab").value(), TokenFormat::kUint16);
  for (const char* name : {"a.JSONL", "a.Ndjson", "a.PARQUET"}) {
    EXPECT_THAT(std::string(GuessTokenFormat(name, "").status().message()),
                HasSubstr("holds documents, not tokens"));
  }
}

}  // namespace
}  // namespace distro::worker
