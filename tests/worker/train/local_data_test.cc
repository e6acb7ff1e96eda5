// Workers that train on their own tokens, and workers that join and leave. The run is a
// LocalAggregator's.
#include <memory>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/run/run_config.h"
#include "common/run/sample_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/worker/training.h"
#include "tests/worker/train/local_aggregator.h"
#include "tests/worker/train/recording_exchange.h"
#include "worker/data/token_file.h"
#include "worker/train/sample_reader.h"

namespace distro::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TinyRun;
using testing::WorkerResult;
using testing::WorkerSetup;

// `word` again and again.
std::string TextOf(const std::string& word, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text.append(word);
  return text;
}

class LocalDataTest : public ::testing::Test {
 protected:
  v1::RunConfig Config(int workers, uint64_t rounds) const {
    v1::RunConfig config = tiny_.DeltaConfig(workers, rounds, /*local_steps=*/2);
    config.set_data(v1::DATA_LOCAL);
    config.set_peak_learning_rate(0.02);
    return *CompleteRunConfig(config);
  }
  std::string File(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(WriteFileAtomically(tiny_.File(name), text).ok());
    return tiny_.File(name);
  }
  // Of workers with these texts.
  std::vector<WorkerSetup> Setups(const v1::RunConfig& config,
                                  const std::vector<std::string>& texts) {
    exchanges_.clear();
    aggregator_ = Aggregate(tiny_, config);
    std::vector<WorkerSetup> setups;
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      exchanges_.push_back(std::make_unique<RecordingExchange>(aggregator_.get()));
      setups.push_back({.name = name,
                        .exchange = exchanges_.back().get(),
                        .data = File(name + ".txt", texts[i]),
                        .public_data = tiny_.text_path()});
    }
    return setups;
  }
  SampleReader Reader(const v1::RunConfig& config, const std::string& worker) const {
    return *SampleReader::Create(&tokens_, config, worker);
  }
  static std::vector<int32_t> Read(const SampleReader& reader, const v1::Slot& slot) {
    std::vector<int32_t> tokens;
    EXPECT_TRUE(reader.ReadTraining(slot, &tokens).ok());
    return tokens;
  }

  const TinyRun tiny_;
  const TokenSource tokens_ = *OpenTokens(tiny_.text_path(), TokenFormat::kAuto);
  std::unique_ptr<server::LocalAggregator> aggregator_;
  std::vector<std::unique_ptr<RecordingExchange>> exchanges_;
};

TEST_F(LocalDataTest, FollowsNameOfWorker) {
  const v1::RunConfig local = Config(1, 4), shared = tiny_.DeltaConfig(1, 4, 2);
  const v1::Slot slot = ConsecutiveSamples(0, 8);
  const std::vector<int32_t> of_a = Read(Reader(local, "a"), slot);
  EXPECT_EQ(Read(Reader(local, "a"), slot), of_a);
  EXPECT_NE(Read(Reader(local, "b"), slot), of_a);
  EXPECT_EQ(Read(Reader(shared, "a"), slot), Read(Reader(shared, "b"), slot));
}

TEST_F(LocalDataTest, RoundsReadOneAfterAnother) {
  const v1::RunConfig config = Config(1, 4);  // 2 steps of 4 samples
  EXPECT_EQ(OwnSamples(config, RoundId(0), 8).first_sample(), 0u);
  EXPECT_EQ(OwnSamples(config, RoundId(3), 8).first_sample(), 24u);
  EXPECT_EQ(SamplesOf(OwnSamples(config, RoundId(3), 4)), 4u);
}

TEST_F(LocalDataTest, HoldsOutPublicText) {
  const SampleReader reader = *SampleReader::OfHeldOut(&tokens_, Config(1, 4));
  EXPECT_EQ(reader.training_samples(), 0u);
  EXPECT_EQ(reader.held_out_samples(), static_cast<uint64_t>(tokens_.tokens() - 1) / 16);
}

TEST_F(LocalDataTest, TrainsOneModelOnOwnTexts) {
  const std::vector<WorkerResult> results = TrainTogether(
      tiny_, Setups(Config(2, 40), {TextOf("abcdefgh", 9000), TextOf("12345678", 9000)}));
  for (const WorkerResult& result : results) {
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.summary.state_hash, results[0].summary.state_hash);
    EXPECT_GT(*result.summary.first_own_evaluation_loss, 5.4);
    EXPECT_LT(*result.summary.last_own_evaluation_loss, 3);
    EXPECT_EQ(result.summary.last_evaluation_loss, results[0].summary.last_evaluation_loss)
        << "of the text that both hold";
  }
  EXPECT_NE(results[0].summary.last_own_evaluation_loss,
            results[1].summary.last_own_evaluation_loss);
}

TEST_F(LocalDataTest, WithoutHeldOutDataThePublicTextIsEvaluatedAlone) {
  v1::RunConfig config = Config(1, 2);
  config.set_held_out_fraction(0);
  const std::vector<WorkerResult> results =
      TrainTogether(tiny_, Setups(config, {TextOf("abcdefgh", 9000)}));
  ASSERT_TRUE(results[0].status.ok()) << results[0].status;
  EXPECT_TRUE(results[0].summary.last_evaluation_loss.has_value());
  EXPECT_FALSE(results[0].summary.last_own_evaluation_loss.has_value());
}

TEST_F(LocalDataTest, UpdatesCountByTheTokensThatTheirWorkersHave) {
  v1::RunConfig config = Config(3, 3);
  config.set_weighting(v1::WEIGHTING_DATA);
  const std::vector<WorkerResult> results = TrainTogether(
      tiny_, Setups(config, {TextOf("a", 4000), TextOf("b", 8000), TextOf("c", 80000)}));
  for (const WorkerResult& result : results) ASSERT_TRUE(result.status.ok()) << result.status;
  for (const RecordingExchange::Seen& round : exchanges_[0]->rounds) {
    std::vector<uint32_t> weights;
    for (const v1::Member& member : round.committed.header->members())
      weights.push_back(member.weight());
    EXPECT_THAT(weights, ElementsAre(4, 8, 15));
  }
}

TEST_F(LocalDataTest, IsRefusedByOtherRuns) {
  std::vector<WorkerSetup> local = Setups(Config(1, 2), {TextOf("abc", 9000)});
  local[0].public_data.clear();
  const absl::Status none = TrainWorker(tiny_, local[0]).status;
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(none.message()), HasSubstr("--public_data"));
  const std::vector<WorkerSetup> shared = Setups(tiny_.DeltaConfig(1, 2, 2), {TextOf("abc", 9000)});
  EXPECT_EQ(TrainWorker(tiny_, shared[0]).status.code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(LocalDataTest, TrainsStatelessWorker) {
  std::vector<WorkerSetup> setups = Setups(Config(1, 3), {TextOf("abcdefgh", 9000)});
  setups[0].stateless = true;
  const WorkerResult result = TrainWorker(tiny_, setups[0]);
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.summary.updates_sent, 3u);
  EXPECT_EQ(result.summary.deltas->inner_steps, 6u);
  setups = Setups(Config(1, 3), {TextOf("abcdefgh", 9000)});
  const WorkerResult keeps = TrainWorker(tiny_, setups[0]);
  EXPECT_NE(keeps.summary.state_hash, result.summary.state_hash);
}

TEST_F(LocalDataTest, StatelessIsOfDeltas) {
  v1::RunConfig config = tiny_.Config(1, 3, /*overlap=*/0);
  config.set_data(v1::DATA_LOCAL);
  std::vector<WorkerSetup> setups = Setups(config, {TextOf("abcdefgh", 9000)});
  setups[0].stateless = true;
  const absl::Status status = TrainWorker(tiny_, setups[0]).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--stateless"));
}

TEST_F(LocalDataTest, LetsWorkerLeaveAfterUpdates) {
  std::vector<WorkerSetup> setups =
      Setups(Config(2, 6), {TextOf("abcdefgh", 9000), TextOf("12345678", 9000)});
  setups[0].updates = 2;
  const std::vector<WorkerResult> results = TrainTogether(tiny_, setups);
  for (const WorkerResult& result : results) ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(results[0].summary.updates_sent, 2u);
  EXPECT_EQ(results[0].summary.next_round, 2u) << "it waits for the round of the last one";
  EXPECT_EQ(results[1].summary.updates_sent, 6u);
}

}  // namespace
}  // namespace distro::worker
