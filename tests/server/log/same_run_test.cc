#include "server/log/same_run.h"

#include "absl/strings/str_replace.h"
#include "common/run/run_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::string_view kRunJson = R"({"name": "test", "seed": 7, "rounds": 100,
    "peak_learning_rate": 0.01, "sequence_length": 8, "samples_per_worker": 1})";
constexpr absl::string_view kModelConfig =
    R"({"model_type": "llama", "vocab_size": 256, "transformers_version": "4.40.0"})";

class SameRunTest : public ::testing::Test {
 protected:
  SameRunTest() {
    run_.run_id = "test-1";
    run_.config = *ParseRunConfig(kRunJson);
    run_.model_config_json = std::string(kModelConfig);
    run_.initial_snapshot.set_sha256(std::string(digest_.begin(), digest_.end()));
    run_.companions = DescribeCompanions({{"tokenizer.json", "{}"}});
  }

  absl::Status Compare(absl::string_view run_json, absl::string_view model_config = kModelConfig,
                       const Companions& companions = {}) {
    return CompareRuns(
        run_, {*ReadRunConfig(run_json), model_config, digest_, DescribeCompanions(companions)});
  }
  // The refusal of run.json with `from` replaced by `to`.
  std::string Refusal(absl::string_view from, absl::string_view to) {
    const absl::Status status = Compare(absl::StrReplaceAll(kRunJson, {{from, to}}));
    EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << to;
    return std::string(status.message());
  }

  Sha256Digest digest_ = Sha256("model");
  RunIdentity run_;
};

TEST_F(SameRunTest, TakesTheSameFiles) {
  EXPECT_EQ(Compare(kRunJson), absl::OkStatus());
  EXPECT_EQ(Compare(RunConfigToJson(run_.config)), absl::OkStatus()) << "the folder's copy";
  EXPECT_EQ(Compare(kRunJson, kModelConfig, {{"tokenizer.json", "{}"}}), absl::OkStatus());
}

TEST_F(SameRunTest, MoreRoundsAreAnExtension) {
  const std::string more = Refusal("100", "200");
  EXPECT_THAT(more, AllOf(HasSubstr("run test-1"), HasSubstr("(rounds: 100 -> 200)"),
                          HasSubstr("distroctl run extend HOST:PORT --rounds 200,"),
                          HasSubstr("run.json keeps 100"), Not(HasSubstr("warmup_rounds"))));
  EXPECT_THAT(Refusal("100", "50"),
              AllOf(HasSubstr("does not become shorter: put 100 back"), Not(HasSubstr("extend"))));
}

TEST_F(SameRunTest, OtherKeysAreNamedWithBothValuesAndAreNotASourceOfLoss) {
  const std::string seed = Refusal("\"seed\": 7", "\"seed\": 8");
  EXPECT_THAT(seed, AllOf(HasSubstr("(seed: 7 -> 8)"), HasSubstr("put back"),
                          HasSubstr("without --run and --model"), Not(HasSubstr("empty"))));
  EXPECT_THAT(Refusal("\"seed\": 7, ", ""), HasSubstr("(seed: 7 -> ")) << "a key was removed";
  EXPECT_THAT(Refusal("0.01", "0.02"), AllOf(HasSubstr("(peak_learning_rate: 0.01 -> 0.02)"),
                                             Not(HasSubstr("min_learning_rate"))))
      << "a default that follows from it";
  EXPECT_THAT(Refusal("\"test\"", "\"other\""),
              AllOf(HasSubstr("(name: \"test\" -> \"other\")"), HasSubstr("of its own")));
  EXPECT_THAT(Refusal("\"seed\": 7, \"rounds\": 100", "\"seed\": 8, \"rounds\": 200"),
              AllOf(HasSubstr("rounds: 100 -> 200, seed: 7 -> 8"), HasSubstr("run extend")));
}

// The version that created the run may have had another default.
TEST_F(SameRunTest, TakesKeysThatRunJsonDoesNotSetAsTheRunHasThem) {
  ASSERT_TRUE(run_.config.has_kept_per_block());
  run_.config.set_kept_per_block(run_.config.kept_per_block() + 1);
  EXPECT_EQ(Compare(kRunJson), absl::OkStatus());
  EXPECT_THAT(Refusal("\"seed\": 7", "\"seed\": 8"), HasSubstr("configuration (seed: 7 -> 8): "));
  run_.config.set_delta_clip(0.5);
  const absl::Status removed = Compare(kRunJson);
  EXPECT_EQ(removed.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(removed.message()),
              HasSubstr("configuration (delta_clip: 0.5 -> not set): "));
  EXPECT_THAT(Refusal("\"seed\": 7", "\"seed\": 8"),
              HasSubstr("(seed: 7 -> 8, delta_clip: 0.5 -> not set)"));
}

TEST_F(SameRunTest, TakesReformattedConfigJson) {
  EXPECT_EQ(Compare(kRunJson,
                    "{\r\n\"vocab_size\":256,\r\n\"transformers_version\":\"5.0.0\",\r\n"
                    "\"model_type\":\"llama\"}\r\n"),
            absl::OkStatus());
  const absl::Status status =
      Compare(kRunJson, R"({"model_type": "llama", "vocab_size": 258, "bos_token_id": 1})");
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("config.json (vocab_size: 256 -> 258, bos_token_id: not set -> 1)"),
                    HasSubstr("put back")));
}

TEST_F(SameRunTest, NamesOtherModelBySha256) {
  const std::string before = ToHex(digest_);
  digest_ = Sha256("other");
  const absl::Status status = Compare(kRunJson);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(before), HasSubstr(ToHex(digest_)), HasSubstr("without --run")));
}

TEST_F(SameRunTest, OtherCompanionsAreNamed) {
  const absl::Status status =
      Compare(kRunJson, kModelConfig, {{"tokenizer.json", "{ }"}, {"tokenizer.model", "x"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("tokenizer.json: \"" + ToHex(Sha256("{}"))),
                    HasSubstr("tokenizer.model: not set -> ")));
}

TEST(SameCompanionTest, BytesOfTheSameContentAreTheSame) {
  EXPECT_TRUE(SameCompanion("tokenizer.json", "{\"a\": 1, \"b\": 2}", "{\r\n\"b\":2,\"a\":1}\n"));
  EXPECT_FALSE(SameCompanion("tokenizer.json", "{\"a\": 1}", "{\"a\": 2}"));
  EXPECT_TRUE(SameCompanion("chat_template.jinja", "a\nb", "a\r\nb"));
  EXPECT_FALSE(SameCompanion("tokenizer.model", "a\nb", "a\r\nb"));
  EXPECT_FALSE(SameCompanion("tokenizer.json", "x", "y"));
}

}  // namespace
}  // namespace distro::server
