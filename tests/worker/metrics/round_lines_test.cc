// One line per round: its content, and that a failed write affects nothing else.
#include "worker/metrics/round_lines.h"

#include <limits>

#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/scratch_folder.h"

namespace distro::worker {
namespace {

using nlohmann::json;

TrainSummary AfterRound(uint64_t round) {
  TrainSummary summary;
  summary.run_id = "demo-1";
  summary.next_round = round + 1;
  summary.rounds = 400;
  summary.rounds_applied = round + 1;
  summary.tokens = 512 * (round + 1);
  summary.training_loss = 3.25;
  summary.learning_rate = 0.5;
  summary.gradient_norm = std::numeric_limits<double>::infinity();
  summary.transfer.sent_payload_bytes = 100 * (round + 1);
  summary.transfer.received_payload_bytes = 200 * (round + 1);
  summary.phases[static_cast<int>(Phase::kWait)] = absl::Seconds(round + 1);
  return summary;
}

TEST(RoundLineTest, SaysWhatTheRoundAdded) {
  TrainSummary now = AfterRound(41);
  now.last_evaluation_loss = 2.5;
  const auto line = ParseJson(RoundLine(now, AfterRound(40), absl::FromUnixMillis(1500)));
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ((*line)["time"], 1.5);
  EXPECT_EQ((*line)["run"], "demo-1");
  EXPECT_EQ((*line)["round"], 41);
  EXPECT_EQ((*line)["rounds"], 400);
  EXPECT_EQ((*line)["loss"], 3.25);
  EXPECT_EQ((*line)["tokens"], 512);
  EXPECT_EQ((*line)["sent_bytes"], 100);
  EXPECT_EQ((*line)["received_bytes"], 200);
  EXPECT_EQ((*line)["held_out_loss"], 2.5);
  EXPECT_EQ((*line)["seconds"]["wait"], 1.0);
  EXPECT_EQ((*line)["seconds"].size(), static_cast<size_t>(kPhases));
  EXPECT_TRUE((*line)["gradient_norm"].is_null()) << "JSON has no infinity";
}

TEST(RoundLineTest, OmitsOldHeldOutLoss) {
  TrainSummary before = AfterRound(40), now = AfterRound(41);
  before.last_evaluation_loss = now.last_evaluation_loss = 2.5;
  EXPECT_FALSE(ParseJson(RoundLine(now, before, absl::UnixEpoch()))->contains("held_out_loss"));
}

// A joiner's rounds before its first step, and those in which it has no slot.
TEST(RoundLineTest, OmitsLossWithoutOwnStep) {
  TrainSummary before = AfterRound(40), now = AfterRound(41);
  now.tokens = before.tokens;
  const auto line = ParseJson(RoundLine(now, before, absl::UnixEpoch()));
  for (const char* key : {"loss", "learning_rate", "gradient_norm"})
    EXPECT_TRUE((*line)[key].is_null()) << key;
}

class RoundLinesTest : public ::testing::Test {
 protected:
  std::unique_ptr<RoundLines> Open(const std::string& path) {
    auto lines = RoundLines::Open(path, &log_, &clock_);
    EXPECT_TRUE(lines.ok()) << lines.status();
    return *std::move(lines);
  }
  testing::ScratchFolder folder_;
  testing::FakeClock clock_;
  std::string said_;
  Log log_{LogLevel::kInfo, Clock::Real(),
           [this](absl::string_view line) { said_ += std::string(line); }};
};

TEST_F(RoundLinesTest, AreOneForEachRoundOverProcesses) {
  const std::string path = folder_.File("metrics.jsonl");
  for (const uint64_t first : {0, 3}) {
    const auto lines = Open(path);
    lines->Add(TrainSummary());  // before the first round
    for (uint64_t round = first; round < first + 3; ++round) {
      TrainSummary reading = AfterRound(round);
      reading.rounds_applied = round - first + 1;  // of this process
      lines->Add(reading);
      lines->Add(reading);  // at the end, for example
    }
  }
  std::vector<uint64_t> rounds;
  for (const absl::string_view line : absl::StrSplit(*ReadFile(path), '\n', absl::SkipEmpty()))
    rounds.push_back((*ParseJson(line))["round"]);
  EXPECT_THAT(rounds, ::testing::ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(RoundLinesTest, TellFullDiskOnce) {
  const auto lines = Open("/dev/full");
  for (uint64_t round = 0; round < 3; ++round) lines->Add(AfterRound(round));
  EXPECT_THAT(said_, ::testing::HasSubstr("round not written to metrics_file"));
  EXPECT_EQ(said_.find("not written"), said_.rfind("not written"));
}

}  // namespace
}  // namespace distro::worker
