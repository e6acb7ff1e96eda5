// Whole runs with LocalExchange: real gradients, real votes, no network.
#include "worker/train/training_run.h"

#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "bench/local/local_exchange.h"
#include "common/base/file.h"
#include "common/model/checkpoint/hf_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/replica/replica.h"
#include "tests/testing/worker/training.h"
#include "tests/worker/train/local_aggregator.h"

namespace distro::worker {
namespace {

using testing::TinyRun;
using testing::WorkerResult;
using testing::WorkerSetup;

// Trains `workers` workers to the end of a run.
std::vector<WorkerResult> Simulate(const TinyRun& tiny, const v1::RunConfig& config, int workers) {
  const auto aggregator = Aggregate(tiny, config);
  std::vector<std::unique_ptr<server::LocalExchange>> exchanges;
  std::vector<WorkerSetup> setups;
  for (int i = 0; i < workers; ++i) {
    exchanges.push_back(std::make_unique<server::LocalExchange>(aggregator.get()));
    setups.push_back({.name = absl::StrCat("w", i), .exchange = exchanges.back().get()});
  }
  return TrainTogether(tiny, setups);
}

class TrainingRunTest : public ::testing::TestWithParam<int> {
 protected:
  uint32_t overlap() const { return GetParam(); }
  const TinyRun tiny_;
};

TEST_P(TrainingRunTest, ReplicasHoldTheSameBits) {
  const std::vector<WorkerResult> results = Simulate(tiny_, tiny_.Config(3, 20, overlap()), 3);
  for (const WorkerResult& result : results) {
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.summary.state_hash, results[0].summary.state_hash);
    EXPECT_EQ(result.summary.rounds_applied, 20u);
    EXPECT_EQ(result.summary.updates_sent, 20u);
    EXPECT_EQ(result.summary.updates_excluded, 0u);
  }
  EXPECT_NE(results[0].momentum_bits, results[1].momentum_bits);
}

TEST_P(TrainingRunTest, RepeatsBits) {
  const v1::RunConfig config = tiny_.Config(2, 10, overlap());
  const std::vector<WorkerResult> first = Simulate(tiny_, config, 2);
  const std::vector<WorkerResult> second = Simulate(tiny_, config, 2);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(first[i].status.ok()) << first[i].status;
    ASSERT_TRUE(second[i].status.ok()) << second[i].status;
    EXPECT_EQ(first[i].summary.state_hash, second[i].summary.state_hash);
    EXPECT_EQ(first[i].momentum_bits, second[i].momentum_bits);
  }
}

// The text is made of eight words: its bytes are far from uniform, which the first rounds must
// learn.
TEST_P(TrainingRunTest, HeldOutLossFalls) {
  const std::vector<WorkerResult> results = Simulate(tiny_, tiny_.Config(2, 60, overlap()), 2);
  ASSERT_TRUE(results[0].status.ok()) << results[0].status;
  EXPECT_GT(*results[0].summary.first_evaluation_loss, 5.4);
  EXPECT_LT(*results[0].summary.last_evaluation_loss, 2.5);
}

TEST_P(TrainingRunTest, PhasesSumToWallTime) {
  const std::vector<WorkerResult> results = Simulate(tiny_, tiny_.Config(1, 5, overlap()), 1);
  ASSERT_TRUE(results[0].status.ok()) << results[0].status;
  absl::Duration sum;
  for (const absl::Duration phase : results[0].summary.phases) sum += phase;
  EXPECT_LT(absl::AbsDuration(sum - results[0].summary.wall_time), absl::Milliseconds(1));
}

INSTANTIATE_TEST_SUITE_P(Overlap, TrainingRunTest, ::testing::Values(0, 1),
                         [](const auto& parameter) {
                           return parameter.param == 0 ? "None" : "One";
                         });

TEST(TrainingRunErrorsTest, MicroBatchesMustDivideTheSamples) {
  const TinyRun tiny;
  v1::RunConfig config = tiny.Config(1, 2, 0);
  config.set_samples_per_worker(3);
  const std::vector<WorkerResult> results = Simulate(tiny, config, 1);
  EXPECT_EQ(results[0].status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(results[0].status.message()),
              ::testing::HasSubstr("micro_batch_samples"));
}

TEST(TrainingRunErrorsTest, SamplesMustFitTheModel) {
  const TinyRun tiny;
  v1::RunConfig config = tiny.Config(1, 2, 0);
  config.set_sequence_length(33);
  const std::vector<WorkerResult> results = Simulate(tiny, config, 1);
  EXPECT_EQ(results[0].status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(results[0].status.message()),
              ::testing::HasSubstr("max_position_embeddings"));
}

TEST(TrainingRunEvaluationTest, IsSkippedWithoutHeldOutData) {
  const TinyRun tiny;
  v1::RunConfig config = tiny.Config(1, 3, 0);
  config.set_held_out_fraction(0);
  const std::vector<WorkerResult> results = Simulate(tiny, config, 1);
  ASSERT_TRUE(results[0].status.ok()) << results[0].status;
  EXPECT_EQ(results[0].summary.rounds_applied, 3u);
  EXPECT_FALSE(results[0].summary.last_evaluation_loss.has_value());
}

// The trained model opens as a checkpoint.
TEST(TrainingRunCheckpointTest, WritesTheModelAtTheEnd) {
  const TinyRun tiny;
  const auto aggregator = Aggregate(tiny, tiny.Config(1, 3, 0));
  server::LocalExchange exchange(aggregator.get());
  const std::string dir = tiny.File("trained");
  const WorkerResult result =
      TrainWorker(tiny, {.name = "w0", .exchange = &exchange, .checkpoint_dir = dir});
  ASSERT_TRUE(result.status.ok()) << result.status;
  const absl::StatusOr<CheckpointFolder> checkpoint = OpenCheckpointFolder(dir);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const Layout layout = *Layout::Create(checkpoint->manifest(), 8);
  TensorBuffer parameters(layout);
  ASSERT_TRUE(checkpoint->ReadInto(layout, &parameters).ok());
  EXPECT_EQ(StateHash(layout, parameters, MakeReferenceBackend().get()), result.summary.state_hash);
}

class CheckpointsTest : public ::testing::Test {
 protected:
  WorkerResult Train(uint64_t interval) {
    const auto aggregator = Aggregate(tiny_, tiny_.Config(1, 6, 0));
    server::LocalExchange exchange(aggregator.get());
    return TrainWorker(tiny_, {.name = "w0",
                               .exchange = &exchange,
                               .checkpoint_dir = dir_,
                               .checkpoint_interval_rounds = interval});
  }
  void PutInTheWay(const std::string& name) {
    ASSERT_TRUE(CreateFolders(dir_).ok());
    ASSERT_TRUE(WriteFileAtomically(dir_ + "/" + name, "").ok());
  }

  const TinyRun tiny_;
  const std::string dir_ = tiny_.File("trained");
};

TEST_F(CheckpointsTest, OfRoundsAreKeptUpToALimit) {
  ASSERT_TRUE(Train(1).status.ok());
  for (const int round : {1, 2})
    EXPECT_FALSE(std::filesystem::exists(absl::StrCat(dir_, "/round-", round)));
  for (const int round : {3, 4, 5})
    EXPECT_TRUE(OpenCheckpointFolder(absl::StrCat(dir_, "/round-", round)).ok());
}

// As on a full disk; the next interval tries again.
TEST_F(CheckpointsTest, ThatCannotBeWrittenDoNotEndTheTraining) {
  PutInTheWay("round-2");
  const WorkerResult result = Train(2);
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.summary.rounds_applied, 6u);
  EXPECT_EQ(result.summary.failed_checkpoints, 0u);
  EXPECT_TRUE(OpenCheckpointFolder(dir_ + "/round-4").ok());
  EXPECT_EQ(result.summary.checkpoint_dir, dir_);
}

TEST_F(CheckpointsTest, EndRunIfLastFails) {
  ASSERT_TRUE(CreateFolders(dir_ + "/model.safetensors").ok());
  const WorkerResult result = Train(0);
  EXPECT_FALSE(result.status.ok());
  EXPECT_THAT(std::string(result.status.message()),
              ::testing::HasSubstr("the last checkpoint is not written; start it again"));
  EXPECT_EQ(result.summary.rounds_applied, 6u);
  EXPECT_EQ(result.summary.failed_checkpoints, 1u);
}

}  // namespace
}  // namespace distro::worker
