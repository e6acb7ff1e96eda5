#include "worker/data/tokenizer.h"

#include <string>
#include <vector>

#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void ExpectInvalid(const absl::Status& status, const std::string& words) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
}

// A tokenizer of 1000 tokens: of a byte its number, and of a digit 500 more.
class TokenizerCommandTest : public ::testing::Test {
 protected:
  TokenizerCommandTest() {
    EXPECT_TRUE(WriteFileAtomically(script_, R"(
case $1 in
  encode) od -An -v -tu1 -w1 | awk '{ print ($1 >= 48 && $1 <= 57 ? $1 + 500 : $1) }' ;;
  decode) tr ' ' '\n' | awk '{ printf "%c", ($1 >= 500 ? $1 - 500 : $1) }' ;;
  *) echo "no direction" >&2; exit 2 ;;
esac
)")
                    .ok());
  }
  Tokenizer Made(const std::string& command, int vocab_size = 1000) const {
    return *Tokenizer::Create(command, vocab_size);
  }

  const testing::ScratchFolder folder_;
  const std::string script_ = folder_.File("tokenizer.sh");
};

TEST(TokenizerTest, BytesNeedNoCommand) {
  const Tokenizer bytes = *Tokenizer::Create("", 256);
  EXPECT_THAT(*bytes.Encode("aZ"), ElementsAre(97, 90));
  EXPECT_EQ(*bytes.Decode({97, 90, 255}), "aZ\xef\xbf\xbd");
  ExpectInvalid(bytes.Encode("").status(), "the prompt has no token: give a longer one");
}

TEST(TokenizerTest, OtherTokensDo) {
  ExpectInvalid(Tokenizer::Create("", 50257).status(),
                "--tokenizer_command: is required, since the model has 50257 tokens");
}

TEST_F(TokenizerCommandTest, EncodesAndDecodes) {
  const Tokenizer tokenizer = Made("sh " + script_);
  EXPECT_THAT(*tokenizer.Encode("a1\n"), ElementsAre(97, 549, 10));
  EXPECT_EQ(*tokenizer.Decode({97, 549, 10}), "a1\n");
}

TEST_F(TokenizerCommandTest, QuotesItsErrors) {
  ExpectInvalid(Made("echo no such file >&2; false").Encode("a").status(),
                "--tokenizer_command: echo no such file >&2; false encode: ended with 1: no such");
  ExpectInvalid(Made("echo too many >&2; exit 3 #").Decode({1}).status(), "ended with 3: too many");
}

TEST_F(TokenizerCommandTest, RefusesInvalidTokens) {
  ExpectInvalid(Made("echo 1 2x #").Encode("a").status(), "'2x' is not a token number");
  ExpectInvalid(Made("echo 1 1000 #").Encode("a").status(),
                "token 1000 is not below the model's vocab_size, 1000");
  ExpectInvalid(Made("true #").Encode("a").status(), "the prompt has no token: give a longer one");
}

TEST(ParseTokensTest, TakesWhiteSpaceOfEveryKind) {
  EXPECT_THAT(*ParseTokens(" 1\n22\t333\r\n", 334), ElementsAre(1, 22, 333));
  EXPECT_THAT(*ParseTokens("", 1), ElementsAre());
}

TEST(ParseTokensTest, RefusesEveryOtherWord) {
  for (const std::string word : {"-1", "+1", "1.0", "0x1", "99999999999", "one", "1,2", "\xff"})
    ExpectInvalid(ParseTokens("0 " + word, 2000000000).status(), "is not a token number");
}

TEST(ParseTokensTest, SurvivesCutsAndFlips) {
  const std::string text = "12 345\n6";
  for (size_t size = 0; size <= text.size(); ++size)
    EXPECT_TRUE(ParseTokens(text.substr(0, size), 346).ok()) << size;
  for (size_t byte = 0; byte < text.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << bit));
      const auto tokens = ParseTokens(flipped, 346);
      if (!tokens.ok()) {
        EXPECT_EQ(tokens.status().code(), absl::StatusCode::kInvalidArgument);
        continue;
      }
      for (const int32_t token : *tokens) EXPECT_TRUE(token >= 0 && token < 346) << flipped;
    }
  }
}

}  // namespace
}  // namespace distro::worker
