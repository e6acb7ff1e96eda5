#include "common/run/pinned_tokenizer.h"

#include <string>

#include "common/base/reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kA(64, 'a'), kB(64, 'b');

TEST(CheckTokenizerTest, OnlyAnotherOneThanThePinnedIsRefused) {
  v1::RunConfig config;
  for (const std::string& tokenizer : {kA, std::string("bytes"), std::string()})
    EXPECT_TRUE(CheckTokenizer(config, tokenizer).ok()) << "the run pins none";
  config.set_tokenizer_sha256(kA);
  EXPECT_TRUE(CheckTokenizer(config, kA).ok());
  EXPECT_TRUE(CheckTokenizer(config, "").ok()) << "tokens of unknown origin, or an older worker";
  for (const std::string& other : {kB, std::string("bytes")}) {
    const absl::Status status = CheckTokenizer(config, other);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(ReasonOf(status), "other_data");
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(kA), HasSubstr(other), HasSubstr("distro-data --tokenizer")));
  }
}

TEST(CheckTokenizerTest, AnythingElseIsNoTokenizer) {
  for (const std::string& wrong : {std::string("b"), kA + "a", std::string(64, 'A')}) {
    EXPECT_EQ(CheckTokenizer({}, wrong).code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace distro
