#include "common/run/run_config.h"

#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/file.h"
#include "common/base/reason.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr absl::string_view kSmallest =
    R"({"name": "a", "rounds": 50, "sequence_length": 8, "samples_per_worker": 2})";

// The smallest run with further keys.
std::string With(absl::string_view keys) {
  return absl::StrReplaceAll(kSmallest, {{"}", absl::StrCat(", ", keys, "}")}});
}

void ExpectRefused(absl::string_view json, absl::string_view start, absl::string_view remedy = "") {
  const auto config = ParseRunConfig(json);
  ASSERT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument) << json;
  EXPECT_THAT(std::string(config.status().message()), StartsWith(std::string(start))) << json;
  EXPECT_THAT(std::string(config.status().message()), HasSubstr(std::string(remedy))) << json;
}

TEST(ParseRunConfigTest, FillsEveryDefault) {
  const auto config = ParseRunConfig(kSmallest);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->seed(), 0);
  EXPECT_EQ(config->peak_learning_rate(), 4e-4);
  EXPECT_EQ(config->min_learning_rate(), 4e-4 / 10);
  EXPECT_EQ(config->warmup_rounds(), 5);
  EXPECT_EQ(config->clip_norm(), 1);
  EXPECT_EQ(config->weight_decay(), 0.1);
  EXPECT_EQ(config->segment_blocks(), 16384);
  EXPECT_EQ(config->download(), v1::DOWNLOAD_MODE_LOSSLESS);
  EXPECT_EQ(config->held_out_fraction(), 0.05);
  EXPECT_EQ(config->start_workers(), 1);
  EXPECT_EQ(config->min_workers(), 1);
  EXPECT_EQ(config->max_workers(), 1024);
  EXPECT_FALSE(config->has_round_window());
  EXPECT_EQ(ParseRunConfig(With(R"("round_window": "5m")"))->max_workers(), 256);
  EXPECT_EQ(config->data(), v1::DATA_SHARED);
  EXPECT_EQ(config->workers(), v1::WORKERS_ANY);
  EXPECT_EQ(config->weighting(), v1::WEIGHTING_STEPS);
  EXPECT_FALSE(config->has_delta_clip());
  EXPECT_EQ(ParseRunConfig(With(R"("data": "local", "weighting": "data")"))->weighting(),
            v1::WEIGHTING_DATA);
  EXPECT_FALSE(config->has_round_deadline());
  EXPECT_FALSE(config->has_min_round_deadline());
  EXPECT_EQ(config->probation_rounds(), 4);
  EXPECT_EQ(ParseRunConfig(With(R"("warmup_rounds": 0)"))->warmup_rounds(), 0);
  EXPECT_EQ(ParseRunConfig(absl::StrReplaceAll(kSmallest, {{"50", "100000"}}))->warmup_rounds(),
            400);
}

TEST(ParseRunConfigTest, DefaultsToDeltas) {
  const auto config = ParseRunConfig(kSmallest);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->method(), v1::METHOD_DELTAS);
  EXPECT_EQ(config->kept_per_block(), 128);
  EXPECT_EQ(config->overlap(), 0);
  EXPECT_EQ(config->local_steps(), 5);
  EXPECT_EQ(config->inner_optimizer(), v1::INNER_OPTIMIZER_MUON);
  EXPECT_EQ(config->muon_momentum(), 0.8);
  EXPECT_EQ(config->adam_beta1(), 0.9);
  EXPECT_EQ(config->adam_beta2(), 0.95);
  EXPECT_EQ(config->adam_epsilon(), 1e-8);
  EXPECT_EQ(config->error_decay(), 0.8);
  EXPECT_EQ(config->outer_learning_rate(), 1);
  EXPECT_EQ(config->divisor(), v1::DIVISOR_SENDERS);
  EXPECT_EQ(config->least_senders(), 0);
  EXPECT_EQ(config->max_workers(), 1024);
  EXPECT_FALSE(config->has_beta());
  EXPECT_EQ(ParseRunConfig(With(R"("local_steps": 1)"))->muon_momentum(), 0.9);
  EXPECT_FALSE(ParseRunConfig(With(R"("inner_optimizer": "adamw")"))->has_muon_momentum());
  EXPECT_FALSE(ParseRunConfig(With(R"("divisor": "all")"))->has_least_senders());
}

TEST(ParseRunConfigTest, SignsHaveDefaultsOfTheirOwn) {
  const auto config = ParseRunConfig(With(R"("method": "signs")"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->kept_per_block(), 4);
  EXPECT_EQ(config->beta(), 0.999);
  EXPECT_EQ(config->overlap(), 1);
  EXPECT_EQ(config->max_workers(), 1024);
  EXPECT_FALSE(config->has_local_steps());
  EXPECT_EQ(ParseRunConfig(With(R"("method": "signs", "kept_per_block": 100)"))->max_workers(),
            327);
}

TEST(ParseRunConfigTest, RefusesKeyOfOtherMethod) {
  ExpectRefused(With(R"("beta": 0.9)"), "beta: has no meaning with method \"deltas\"",
                "error_decay");
  for (const char* key_value :
       {R"("local_steps": 1)", R"("inner_optimizer": "muon")", R"("muon_momentum": 0.9)",
        R"("adam_beta1": 0.9)", R"("adam_beta2": 0.9)", R"("adam_epsilon": 1e-8)",
        R"("error_decay": 0.8)", R"("outer_learning_rate": 1)", R"("divisor": "all")",
        R"("least_senders": 0)"}) {
    const std::string key(key_value + 1, strchr(key_value + 1, '"') - key_value - 1);
    ExpectRefused(With(absl::StrCat(R"("method": "signs", )", key_value)),
                  absl::StrCat(key, ": has no meaning with method \"signs\""), "remove it");
  }
  ExpectRefused(With(R"("overlap": 1)"), "overlap: deltas have none", "remove the key");
  ExpectRefused(With(R"("inner_optimizer": "adamw", "muon_momentum": 0.9)"),
                "muon_momentum: has no meaning with inner_optimizer");
  ExpectRefused(With(R"("divisor": "all", "least_senders": 0.5)"),
                "least_senders: has no meaning with divisor");
}

TEST(ParseRunConfigTest, DataMayBeNamedByItsFingerprint) {
  const std::string sha256(64, 'a');
  const auto named = [](absl::string_view fingerprint, absl::string_view more) {
    return With(absl::StrCat(R"("data_fingerprint": ")", fingerprint, "\"", more));
  };
  const auto config = ParseRunConfig(named(sha256, ""));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->data_fingerprint(), sha256);
  EXPECT_EQ(ParseRunConfig(named(std::string(64, 'A'), ""))->data_fingerprint(), sha256);
  for (const std::string& wrong :
       {std::string("my data"), std::string(63, 'a'), std::string(64, 'g')})
    ExpectRefused(named(wrong, ""), "data_fingerprint: is not 64 hexadecimal digits",
                  "distro-worker fingerprint");
  // Theirs is any text, and is compared as it is.
  for (const std::string& text : {std::string("my data"), std::string(64, 'A')}) {
    const auto python = ParseRunConfig(named(text, R"(, "workers": "python")"));
    ASSERT_TRUE(python.ok()) << python.status();
    EXPECT_EQ(python->data_fingerprint(), text);
  }
  EXPECT_TRUE(ParseRunConfig(named("any", "")).ok());
  for (const std::string& length : {std::string(), std::string(129, 'a')})
    ExpectRefused(named(length, R"(, "workers": "python")"), "data_fingerprint: has ");
}

TEST(ParseRunConfigTest, PinsTokenizer) {
  const auto pinned = [](absl::string_view sha256) {
    return With(absl::StrCat(R"("tokenizer_sha256": ")", sha256, "\""));
  };
  const auto config = ParseRunConfig(pinned(std::string(64, 'a')));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->tokenizer_sha256(), std::string(64, 'a'));
  EXPECT_EQ(ParseRunConfig(pinned(std::string(64, 'A')))->tokenizer_sha256(), std::string(64, 'a'));
  for (const std::string& wrong :
       {std::string(), std::string("bytes"), std::string(63, 'a'), std::string(64, 'g')})
    ExpectRefused(pinned(wrong), "tokenizer_sha256: is not 64 hexadecimal digits", "sha256sum");
}

TEST(ParseRunConfigTest, ReadsEveryKindOfValue) {
  const auto config = ParseRunConfig(With(
      R"("method": "signs", "seed": 18446744073709551615, "beta": 0, "segment_blocks": 1e3, "round_deadline": "1.25s",
         "download": "top", "kept_votes_per_block": 32, "overlap": 0)"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->seed(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(config->beta(), 0);
  EXPECT_EQ(config->segment_blocks(), 1000);
  EXPECT_EQ(config->round_deadline().seconds(), 1);
  EXPECT_EQ(config->round_deadline().nanos(), 250'000'000);
  EXPECT_EQ(config->download(), v1::DOWNLOAD_MODE_TOP);
  EXPECT_EQ(config->overlap(), 0);
  EXPECT_EQ(ParseRunConfig(With(R"("round_deadline": "2m")"))->round_deadline().seconds(), 120);
}

TEST(ParseRunConfigTest, DefaultsLeastDeadline) {
  const auto least = [](absl::string_view keys) {
    const auto config = ParseRunConfig(With(keys));
    EXPECT_TRUE(config.ok()) << config.status();
    return absl::Seconds(config->min_round_deadline().seconds()) +
           absl::Nanoseconds(config->min_round_deadline().nanos());
  };
  EXPECT_EQ(least(R"("round_deadline": "2m")"), absl::Seconds(5));
  EXPECT_EQ(least(R"("round_deadline": "0.3s")"), absl::Milliseconds(300));
  EXPECT_EQ(least(R"("round_deadline": "10s", "min_round_deadline": "1.5s")"),
            absl::Milliseconds(1500));
  EXPECT_EQ(least(R"("round_deadline": "10s", "min_round_deadline": "10s")"), absl::Seconds(10));
}

TEST(ParseRunConfigTest, NamesTheKeyAndTheRemedy) {
  ExpectRefused("[]", "is not a JSON object");
  ExpectRefused("{", "not valid JSON");
  ExpectRefused("", "is empty");
  ExpectRefused(With(R"("seed": 1, "seed": 2)"), "not valid JSON: the key seed is repeated");
  ExpectRefused(With(R"("learning_rate": 1)"), "learning_rate: is not a key of a run",
                "peak_learning_rate");
  ExpectRefused(With(R"("keptPerBlock": 1)"), "keptPerBlock: is not a key", "kept_per_block");
  ExpectRefused(With(R"("seed": null)"), "seed: is null", "remove the key");
  ExpectRefused(With(R"("seed": -1)"), "seed: -1 is not a whole number");
  ExpectRefused(With(R"("seed": "1")"), "seed: ");
  ExpectRefused(With(R"("seed": 1.5)"), "seed: 1.5 is not a whole number");
  ExpectRefused(With(R"("overlap": true)"), "overlap: true is not a whole number");
  ExpectRefused(With(R"("overlap": 4294967296)"), "overlap: 4294967296 is not");
  ExpectRefused(With(R"("beta": "0.9")"), "beta: \"0.9\" is not a number");
  ExpectRefused(With(R"("beta": 1e999)"), "not valid JSON");
  ExpectRefused(absl::StrReplaceAll(kSmallest, {{"\"a\"", "7"}}), "name: 7 is not a text");
  ExpectRefused(With(R"("download": "all")"), "download: ", "lossless");
  ExpectRefused(With(R"("download": 1)"), "download: ", "lossless");
  ExpectRefused(With(R"("method": "votes")"), "method: ", R"(give "signs" or "deltas")");
  ExpectRefused(With(R"("round_deadline": 30)"), "round_deadline: 30 is not a duration", "30s");
  ExpectRefused(With(R"("round_deadline": "inf")"), "round_deadline: ");
}

TEST(ParseRunConfigTest, NeedsNoLengthForPython) {
  constexpr char kPython[] =
      R"({"name": "a", "rounds": 50, "workers": "python", "samples_per_worker": 2})";
  const absl::StatusOr<v1::RunConfig> config = ParseRunConfig(kPython);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->sequence_length(), 1u);
}

TEST(ParseRunConfigTest, RefusesValuesOutOfRange) {
  ExpectRefused(absl::StrReplaceAll(kSmallest, {{"\"a\"", "\"A\""}}), "name");
  ExpectRefused(absl::StrReplaceAll(kSmallest, {{"50", "0"}}), "rounds: is required");
  ExpectRefused(absl::StrReplaceAll(kSmallest, {{"50", "4294967297"}}), "rounds: 4294967297");
  ExpectRefused(absl::StrReplaceAll(kSmallest, {{"8", "0"}}), "sequence_length: is required");
  ExpectRefused(absl::StrReplaceAll(kSmallest, {{"8", "1048577"}}), "sequence_length: 1048577");
  ExpectRefused(absl::StrReplaceAll(kSmallest, {{"2}", "0}"}}), "samples_per_worker: is required");
  for (const char* key_value : {R"("peak_learning_rate": 0)",
                                R"("peak_learning_rate": 1.5)",
                                R"("peak_learning_rate": 1e-50)",
                                R"("min_learning_rate": -1)",
                                R"("local_steps": 0)",
                                R"("local_steps": 1001)",
                                R"("muon_momentum": 1)",
                                R"("adam_beta1": -0.1)",
                                R"("adam_beta2": 0.99999999999)",
                                R"("adam_epsilon": 0)",
                                R"("adam_epsilon": 1e-50)",
                                R"("error_decay": 1)",
                                R"("outer_learning_rate": -1)",
                                R"("outer_learning_rate": 1e-26)",
                                R"("outer_learning_rate": 2.5)",
                                R"("least_senders": 1.5)",
                                R"("clip_norm": 0)",
                                R"("clip_norm": -1)",
                                R"("clip_norm": 1e39)",
                                R"("weight_decay": 1.1)",
                                R"("weight_decay": -0.1)",
                                R"("kept_per_block": 0)",
                                R"("kept_per_block": 4097)",
                                R"("segment_blocks": 0)",
                                R"("segment_blocks": 1048577)",
                                R"("held_out_fraction": 0.6)",
                                R"("held_out_fraction": -0.1)",
                                R"("start_workers": 0)",
                                R"("min_workers": 0)",
                                R"("max_workers": 0)",
                                R"("round_deadline": "0s")",
                                R"("round_deadline": "-1s")",
                                R"("round_deadline": "169h")",
                                R"("round_window": "0s")",
                                R"("round_window": "169h")",
                                R"("data": "mine")",
                                R"("weighting": "loss")",
                                R"("delta_clip": 0)",
                                R"("delta_clip": -1)",
                                R"("probation_rounds": 1001)",
                                R"("overlap": 2)"}) {
    const std::string key(key_value + 1, strchr(key_value + 1, '"') - key_value - 1);
    ExpectRefused(With(key_value), absl::StrCat(key, ": "));
  }
  for (const char* beta : {"1", "-0.1", "0.99999999999"})
    ExpectRefused(With(absl::StrCat(R"("method": "signs", "beta": )", beta)), "beta: ");
}

TEST(ParseRunConfigTest, RefusesContradictions) {
  ExpectRefused(With(R"("warmup_rounds": 50)"), "warmup_rounds: 50 is not below rounds 50",
                "raise rounds");
  ExpectRefused(With(R"("min_learning_rate": 0.1)"), "min_learning_rate: 0.1 exceeds",
                "raise peak_learning_rate");
  ExpectRefused(With(R"("min_workers": 2)"), "min_workers: 2 exceeds start_workers 1",
                "set start_workers to 2");
  ExpectRefused(With(R"("start_workers": 3, "max_workers": 2)"), "start_workers: 3 exceeds",
                "raise max_workers");
  ExpectRefused(With(R"("method": "signs", "kept_per_block": 8, "max_workers": 4096)"),
                "max_workers: ", "at most 4095");
  for (const char* fits : {R"("method": "signs", "kept_per_block": 8, "max_workers": 4095)",
                           R"("kept_per_block": 8, "max_workers": 32767)"})
    EXPECT_TRUE(ParseRunConfig(With(fits)).ok()) << fits;
  ExpectRefused(With(R"("download": "top")"), "kept_votes_per_block: is required");
  ExpectRefused(With(R"("kept_votes_per_block": 3)"), "kept_votes_per_block: has no meaning",
                "remove it");
  ExpectRefused(With(R"("download": "top", "kept_votes_per_block": 4097)"),
                "kept_votes_per_block: 4097");
  ExpectRefused(With(R"("method": "signs", "round_window": "1s")"), "round_window: has no meaning",
                "remove it");
  ExpectRefused(With(R"("round_window": "2s", "round_deadline": "2s")"),
                "round_window: 2s is not below round_deadline, 2s", "raise round_deadline");
  const auto windowed = ParseRunConfig(With(R"("round_window": "1.9s", "round_deadline": "2s")"));
  ASSERT_TRUE(windowed.ok()) << windowed.status();
  EXPECT_EQ(windowed->min_round_deadline().nanos(), 100'000'000) << "what the window leaves";
  ExpectRefused(With(R"("round_window": "1s", "round_deadline": "3s", "min_round_deadline": "3s")"),
                "min_round_deadline: 3s exceeds what round_deadline leaves after round_window, 2s",
                "raise round_deadline");
  for (const char* key : {R"("weighting": "steps")", R"("delta_clip": 1)"})
    ExpectRefused(With(absl::StrCat(R"("method": "signs", )", key)),
                  absl::StrCat(absl::string_view(key).substr(1, 10) == "weighting\"" ? "weighting"
                                                                                     : "delta_clip",
                               ": has no meaning"),
                  "remove it");
  ExpectRefused(With(R"("weighting": "data")"), "weighting: \"data\" has no meaning",
                "set data to \"local\"");
  ExpectRefused(With(R"("data": "local", "weighting": "data", "round_window": "1s")"),
                "weighting: is \"steps\" with round_window", "remove one");
  ExpectRefused(With(R"("min_round_deadline": "1s")"), "min_round_deadline: has no meaning",
                "set round_deadline");
  ExpectRefused(With(R"("round_deadline": "2s", "min_round_deadline": "2.000000001s")"),
                "min_round_deadline: 2.000000001s exceeds round_deadline, 2s",
                "raise round_deadline");
  ExpectRefused(With(R"("round_deadline": "2s", "min_round_deadline": "0s")"),
                "min_round_deadline: 0 s");
  ExpectRefused(With(R"("round_deadline": "2s", "min_round_deadline": 1)"),
                "min_round_deadline: 1 is not a duration", "30s");
}

TEST(CompleteRunConfigTest, KeepsACompleteConfiguration) {
  const v1::RunConfig config = *ParseRunConfig(kSmallest);
  EXPECT_TRUE(MessageDifferencer::Equals(*CompleteRunConfig(config), config));
}

TEST(CompleteRunConfigTest, RefusesWhatOnlyAPeerCanSend) {
  const v1::RunConfig config = *ParseRunConfig(kSmallest);
  v1::RunConfig unknown_mode = config;
  unknown_mode.set_download(static_cast<v1::DownloadMode>(7));
  EXPECT_EQ(CompleteRunConfig(unknown_mode).status().code(), absl::StatusCode::kInvalidArgument);
  v1::RunConfig unknown_method = config;
  unknown_method.set_method(static_cast<v1::Method>(7));
  EXPECT_EQ(CompleteRunConfig(unknown_method).status().code(), absl::StatusCode::kInvalidArgument);
  v1::RunConfig unknown_field = config;
  unknown_field.GetReflection()->MutableUnknownFields(&unknown_field)->AddVarint(999, 1);
  EXPECT_EQ(CompleteRunConfig(unknown_field).status().code(), absl::StatusCode::kInvalidArgument);
  v1::RunConfig not_a_number = config;
  not_a_number.set_weight_decay(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(CompleteRunConfig(not_a_number).status().code(), absl::StatusCode::kInvalidArgument);
  v1::RunConfig bad_nanos = config;
  bad_nanos.mutable_round_deadline()->set_seconds(1);
  bad_nanos.mutable_round_deadline()->set_nanos(-1);
  EXPECT_EQ(CompleteRunConfig(bad_nanos).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(RunConfigToJsonTest, IsReadBackToTheSameMessage) {
  for (const std::string& text :
       {std::string(kSmallest),
        With(R"("seed": 18446744073709551615, "peak_learning_rate": 0.0012345678901234567,
                "download": "top", "kept_votes_per_block": 9, "round_deadline": "0.000000001s", "probation_rounds": 0,
                "held_out_fraction": 0, "warmup_rounds": 0, "overlap": 0)"),
        With(R"("method": "signs", "beta": 0.5)"),
        With(R"("local_steps": 7, "inner_optimizer": "adamw", "divisor": "all")")}) {
    const auto config = ParseRunConfig(text);
    ASSERT_TRUE(config.ok()) << config.status();
    const auto again = ParseRunConfig(RunConfigToJson(*config));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(MessageDifferencer::Equals(*again, *config)) << RunConfigToJson(*again);
  }
}

TEST(RunConfigFileTest, ReadsExample) {
  const std::string path = absl::StrCat(DISTRO_SOURCE_DIR, "/examples/run.json");
  const auto config = ParseRunConfig(*ReadFile(path));
  EXPECT_TRUE(config.ok()) << config.status();
}

TEST(RunConfigFileTest, TruncatedAnywhereIsRefused) {
  const std::string text = *ReadFile(absl::StrCat(DISTRO_SOURCE_DIR, "/examples/run.json"));
  const size_t end = text.rfind('}');
  for (size_t size = 0; size <= end; ++size) {
    ASSERT_EQ(ParseRunConfig(text.substr(0, size)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << size;
  }
}

TEST(RunConfigFileTest, FlippedAnywhereIsReadOrRefused) {
  const std::string text = *ReadFile(absl::StrCat(DISTRO_SOURCE_DIR, "/examples/run.json"));
  for (size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      const auto config = ParseRunConfig(flipped);
      if (config.ok()) continue;
      ASSERT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument) << flipped;
    }
  }
}

TEST(RunConfigDocumentTest, HasARowForEveryKeyAndNoOther) {
  const std::string page = *ReadFile(absl::StrCat(DISTRO_SOURCE_DIR, "/docs/run_configuration.md"));
  const auto* descriptor = v1::RunConfig::descriptor();
  size_t rows = 0;
  for (size_t at = page.find("\n| `"); at != std::string::npos; at = page.find("\n| `", at + 1)) {
    ++rows;
  }
  EXPECT_EQ(rows, static_cast<size_t>(descriptor->field_count()));
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const std::string row = absl::StrCat("\n| `", descriptor->field(i)->name(), "` |");
    EXPECT_TRUE(absl::StrContains(page, row)) << row;
  }
}

TEST(RunConfigTest, ValuesOfANewerVersionAreRefused) {
  v1::RunConfig config;
  config.set_method(v1::METHOD_DELTAS);
  EXPECT_EQ(CheckValuesAreKnown(config), absl::OkStatus());
  config.set_method(static_cast<v1::Method>(v1::Method_MAX + 1));
  const absl::Status status = CheckValuesAreKnown(config);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), "version");
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("method ", v1::Method_MAX + 1)));
  config.set_method(v1::METHOD_DELTAS);
  config.set_divisor(static_cast<v1::Divisor>(v1::Divisor_MAX + 1));
  EXPECT_THAT(std::string(CheckValuesAreKnown(config).message()),
              HasSubstr(absl::StrCat("divisor ", v1::Divisor_MAX + 1)));
}

TEST(RunConfigTest, KeysOfANewerVersionAreRefusedByNumber) {
  v1::RunConfig config;
  config.set_method(v1::METHOD_DELTAS);
  EXPECT_EQ(CheckKeysAreKnown(config), absl::OkStatus());
  config.GetReflection()->MutableUnknownFields(&config)->AddVarint(4000, 1);
  EXPECT_EQ(CheckValuesAreKnown(config), absl::OkStatus());
  const absl::Status status = CheckKeysAreKnown(config);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), "version");
  EXPECT_THAT(std::string(status.message()), HasSubstr("key 4000 of the run"));
}

}  // namespace
}  // namespace distro
