#include "server/auth/tokens/tokens_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/net/security/token.h"

namespace distro::server {
namespace {

using ::testing::HasSubstr;

std::string Token(char c) { return std::string(43, c); }

std::string Good() {
  return absl::StrCat("# who may\n\n", TokensLine("w1", Role::kWorker, Token('a')), "\n",
                      TokensLine("w1", Role::kWorker, Token('b')), "\n  ",
                      TokensLine("boss", Role::kAdmin, Token('c')), "\t\r\n");
}

TEST(TokenTest, IsNewEachTimeAndReadBack) {
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) {
    const absl::StatusOr<std::string> token = NewToken();
    ASSERT_TRUE(token.ok()) << token.status();
    EXPECT_TRUE(IsToken(*token)) << *token;
    tokens.insert(*token);
  }
  EXPECT_EQ(tokens.size(), 100u);
}

TEST(TokenTableTest, FindsBothTokensOfARotation) {
  const absl::StatusOr<TokenTable> table = TokenTable::Parse(Good());
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->size(), 3u);
  for (const char c : {'a', 'b'}) {
    const auto owner = table->Find(Token(c));
    ASSERT_TRUE(owner.has_value());
    EXPECT_EQ(owner->name, "w1");
    EXPECT_EQ(owner->role, Role::kWorker);
  }
  EXPECT_EQ(table->Find(Token('c'))->role, Role::kAdmin);
  EXPECT_FALSE(table->Find(Token('d')).has_value());
  EXPECT_FALSE(table->Find("").has_value());
}

TEST(TokenTableTest, ReadsExpiry) {
  const absl::Time until = absl::FromUnixSeconds(1800000000);
  const std::string line = TokensLine("w1", Role::kWorker, Token('a'), until);
  EXPECT_THAT(line, ::testing::EndsWith(" 2027-01-15T08:00:00Z"));
  EXPECT_EQ(TokenTable::Parse(line)->Find(Token('a'))->expires, until);
  EXPECT_EQ(TokenTable::Parse(Good())->Find(Token('a'))->expires, absl::InfiniteFuture());
}

TEST(TokenTableTest, HoldsNobodyInAnEmptyFile) {
  const absl::StatusOr<TokenTable> table = TokenTable::Parse("");
  ASSERT_TRUE(table.ok());
  EXPECT_FALSE(table->Find(Token('a')).has_value());
}

TEST(TokenTableTest, ReadsUpperCaseHash) {
  const std::string hash = absl::AsciiStrToUpper(ToHex(Sha256(Token('a'))));
  const auto table = TokenTable::Parse("w1 worker " + hash);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_TRUE(table->Find(Token('a')).has_value());
}

TEST(TokenTableTest, NamesTheLineThatIsWrong) {
  const std::string hash(64, '0');
  const std::pair<std::string, const char*> cases[] = {
      {"w1 worker", "name role hash"},
      {"w1 worker " + hash + " 2026-12-24T00:00:00Z more", "name role hash"},
      {"w1 worker " + hash + " more", "time"},
      {"w1 worker " + hash + " 2026-12-24", "time"},
      {"W1 worker " + hash, "name"},
      {"w1 boss " + hash, "role"},
      {"w1 worker " + hash.substr(1), "SHA-256"},
      {"w1 worker " + hash.substr(1) + "g", "SHA-256"},
      {TokensLine("w2", Role::kWorker, Token('a')), "earlier"},
      {TokensLine("w1", Role::kAdmin, Token('x')), "another role"},
      {TokensLine("w1", Role::kWorker, Token('x')), "two tokens"},
  };
  for (const auto& [line, why] : cases) {
    const absl::Status status = TokenTable::Parse(Good() + line + "\n").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(status.message(), HasSubstr("line 6")) << line;
    EXPECT_THAT(status.message(), HasSubstr(why)) << line;
  }
}

// No damage lets in a token that the file did not name.
void ExpectNobodyElse(const std::string& text) {
  const absl::StatusOr<TokenTable> table = TokenTable::Parse(text);
  if (!table.ok()) {
    EXPECT_EQ(table.status().code(), absl::StatusCode::kInvalidArgument);
    return;
  }
  EXPECT_LE(table->size(), 3u);
  EXPECT_FALSE(table->Find(Token('d')).has_value());
  EXPECT_FALSE(table->Find("").has_value());
}

TEST(TokenTableTest, SurvivesTruncationAtEachByte) {
  const std::string text = Good();
  for (size_t size = 0; size < text.size(); ++size) ExpectNobodyElse(text.substr(0, size));
}

TEST(TokenTableTest, SurvivesAFlipOfEachByte) {
  const std::string text = Good();
  for (size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      ExpectNobodyElse(flipped);
    }
  }
}

TEST(WithoutNameTest, DropsTheLinesOfOneNameOnly) {
  const absl::StatusOr<std::string> without = WithoutName(Good(), "w1");
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(*without, absl::StrCat("# who may\n\n  ", TokensLine("boss", Role::kAdmin, Token('c')),
                                   "\t\r\n"));
  EXPECT_EQ(WithoutName(*without, "w1").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(*WithoutName(TokensLine("w1", Role::kWorker, Token('a')), "w1"), "");
}

}  // namespace
}  // namespace distro::server
