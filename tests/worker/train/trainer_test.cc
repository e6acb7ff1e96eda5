// The trainer with an exchange that stops or announces invalid rounds. The run is a
// LocalAggregator's; an exchange before it changes one thing.
#include "worker/train/trainer.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "common/base/reason.h"
#include "common/model/checkpoint/hf_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/worker/training.h"
#include "tests/worker/train/forwarding_exchange.h"
#include "tests/worker/train/local_aggregator.h"

namespace distro::worker {
namespace {

using testing::TinyRun;
using testing::TrainWorker;
using testing::WorkerResult;

// Requests a stop during the download of the snapshot.
class StoppedAtFirst final : public ForwardingExchange {
 public:
  using ForwardingExchange::ForwardingExchange;
  absl::Status DownloadSnapshot(const v1::SnapshotInfo& snapshot,
                                const std::string& path) override {
    const absl::Status status = inner_.DownloadSnapshot(snapshot, path);
    Stop();
    return status;
  }
};

// Requests a stop after the training thread has polled for events and begins a gradient.
class StoppedInAStep final : public ForwardingExchange {
 public:
  using ForwardingExchange::ForwardingExchange;
  bool Ready() override {
    Stop();
    return false;
  }
};

// Announces other samples than the run's configuration says.
class OtherSlots final : public ForwardingExchange {
 public:
  OtherSlots(server::LocalAggregator* aggregator, uint32_t samples)
      : ForwardingExchange(aggregator), samples_(samples) {}
  absl::StatusOr<RoundEvent> Next() override {
    absl::StatusOr<RoundEvent> event = inner_.Next();
    if (auto* opened = std::get_if<OpenedRound>(&*event)) {
      opened->open.mutable_slots(0)->set_samples(samples_);
    }
    return event;
  }

 private:
  const uint32_t samples_;
};

// Announces a learning rate that carries the lookahead copy beyond what a forward pass can hold.
class HugeSteps final : public ForwardingExchange {
 public:
  using ForwardingExchange::ForwardingExchange;
  absl::StatusOr<RoundEvent> Next() override {
    absl::StatusOr<RoundEvent> event = inner_.Next();
    if (auto* opened = std::get_if<OpenedRound>(&*event)) {
      opened->open.mutable_step()->set_eta_bits(std::bit_cast<uint32_t>(1e30f));
    }
    return event;
  }
};

class TrainerTest : public ::testing::Test {
 protected:
  const TinyRun tiny_;
  const std::unique_ptr<server::LocalAggregator> aggregator_ =
      Aggregate(tiny_, tiny_.Config(1, 3, 0));
};

TEST_F(TrainerTest, TellsWhatRoundsOfDeltasDid) {
  const auto aggregator = Aggregate(tiny_, tiny_.DeltaConfig(1, 3, 2));
  server::LocalExchange exchange(aggregator.get());
  const WorkerResult result = TrainWorker(tiny_, {.name = "w0", .exchange = &exchange});
  ASSERT_TRUE(result.status.ok()) << result.status;
  ASSERT_TRUE(result.summary.deltas.has_value());
  const DeltaReadings& readings = *result.summary.deltas;
  EXPECT_EQ(readings.inner_steps, 6u);
  EXPECT_GT(readings.delta_norm.value_or(0), 0);
  EXPECT_GT(readings.energy_kept.value_or(0), 0);
  EXPECT_TRUE(readings.capped.has_value());
  EXPECT_TRUE(readings.cancelled.has_value());
}

TEST_F(TrainerTest, TellsNothingOfDeltasInARunOfSigns) {
  server::LocalExchange exchange(aggregator_.get());
  const WorkerResult result = TrainWorker(tiny_, {.name = "w0", .exchange = &exchange});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_FALSE(result.summary.deltas.has_value());
}

TEST_F(TrainerTest, DropsAnEvaluationWhenStopped) {
  StoppedAtFirst exchange(aggregator_.get());
  const WorkerResult result = TrainWorker(tiny_, {.name = "w0", .exchange = &exchange});
  EXPECT_EQ(result.status.code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(result.summary.last_evaluation_loss.has_value());
}

TEST_F(TrainerTest, DropsAGradientWhenStopped) {
  StoppedInAStep exchange(aggregator_.get());
  const WorkerResult result = TrainWorker(tiny_, {.name = "w0", .exchange = &exchange});
  EXPECT_EQ(result.status.code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(result.summary.last_evaluation_loss.has_value());
  EXPECT_EQ(result.summary.tokens, 0u);
  EXPECT_EQ(result.summary.updates_sent, 0u);
}

// 3 is no multiple of the micro-batch, 8 more than samples_per_worker.
TEST_F(TrainerTest, RefusesSlotsThatTheRunDoesNotAllow) {
  for (const uint32_t samples : {1, 3, 8}) {
    const auto aggregator = Aggregate(tiny_, tiny_.Config(1, 3, 0));
    OtherSlots exchange(aggregator.get(), samples);
    const WorkerResult result = TrainWorker(tiny_, {.name = "w0", .exchange = &exchange});
    EXPECT_EQ(result.status.code(), absl::StatusCode::kInvalidArgument) << samples;
    EXPECT_THAT(std::string(result.status.message()), ::testing::HasSubstr("round 0"));
  }
}

TEST(TrainerAbstentionTest, IsNoUpdateThatWasExcluded) {
  const TinyRun tiny;
  const auto aggregator = Aggregate(tiny, tiny.Config(1, 3, /*overlap=*/1));
  HugeSteps exchange(aggregator.get());
  const WorkerResult result = TrainWorker(tiny, {.name = "w0", .exchange = &exchange});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.summary.updates_sent, 1u);
  EXPECT_EQ(result.summary.nonfinite_steps, 2u);
  EXPECT_EQ(result.summary.updates_excluded, 0u);
}

TEST(TrainerAbstentionTest, WithoutEndEndsTheWorker) {
  const TinyRun tiny;
  const auto aggregator = Aggregate(tiny, tiny.Config(1, 40, /*overlap=*/1));
  HugeSteps exchange(aggregator.get());
  const WorkerResult result = TrainWorker(tiny, {.name = "w0", .exchange = &exchange});
  EXPECT_EQ(ReasonOf(result.status), "not_finite") << result.status;
  EXPECT_EQ(result.summary.updates_sent, 1u);
  EXPECT_EQ(result.summary.nonfinite_steps, kMostAbstentions);
}

// Weights that are finite and whose loss is not.
TEST(TrainerAbstentionTest, FromTheFirstRoundToTheLastIsNoSuccess) {
  const TinyRun tiny;
  const CheckpointFolder model = *OpenCheckpointFolder(tiny.checkpoint_dir());
  const Layout layout = *Layout::Create(model.manifest(), kDefaultSegmentBlocks);
  TensorBuffer huge(layout);
  for (int t = 0; t < huge.tensors(); ++t) std::ranges::fill(huge.tensor(t), 1e30f);
  ASSERT_TRUE(WriteCheckpointFolder(tiny.checkpoint_dir(), model.config_json(), layout, huge).ok());
  const auto aggregator = Aggregate(tiny, tiny.Config(1, 3, 0));
  server::LocalExchange exchange(aggregator.get());
  const WorkerResult result = TrainWorker(tiny, {.name = "w0", .exchange = &exchange});
  EXPECT_EQ(ReasonOf(result.status), "not_finite") << result.status;
  EXPECT_EQ(result.summary.rounds_applied, 3u);
  EXPECT_EQ(result.summary.nonfinite_steps, 3u);
}

}  // namespace
}  // namespace distro::worker
