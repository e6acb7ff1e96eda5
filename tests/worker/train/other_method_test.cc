// A worker of a run of deltas, and an aggregator that announces or records values that the run does
// not allow.
#include <functional>
#include <string>
#include <vector>

#include "common/base/reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/worker/training.h"
#include "tests/worker/train/local_aggregator.h"
#include "tests/worker/train/recording_exchange.h"

namespace distro::worker {
namespace {

using ::testing::HasSubstr;
using testing::TinyRun;
using testing::TrainWorker;
using testing::WorkerResult;

class OtherMethodTest : public ::testing::Test {
 protected:
  // Micro-batches of 2.
  WorkerResult Train(Exchange* exchange) const {
    return TrainWorker(tiny_, {.name = "w0", .exchange = exchange});
  }
  // The status with which a worker ends after this announcement.
  absl::Status Hears(const std::function<void(RoundId, v1::RoundOpen*)>& change) const {
    const auto aggregator = Aggregate(tiny_, deltas_);
    RecordingExchange exchange(aggregator.get());
    exchange.change_open = change;
    const WorkerResult result = Train(&exchange);
    EXPECT_EQ(result.summary.updates_sent, 0u);
    return result.status;
  }

  const TinyRun tiny_;
  // Two local steps over 4 samples each.
  const v1::RunConfig deltas_ = tiny_.DeltaConfig(/*workers=*/1, /*rounds=*/2, /*local_steps=*/2);
};

TEST_F(OtherMethodTest, IsRefusedIfTheRunHasAKeyOfANewerVersion) {
  v1::RunConfig config = deltas_;
  config.GetReflection()->MutableUnknownFields(&config)->AddVarint(4000, 1);
  const auto aggregator = Aggregate(tiny_, config);
  RecordingExchange exchange(aggregator.get());
  const absl::Status status = Train(&exchange).status;
  EXPECT_EQ(ReasonOf(status), "version") << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("does not know key 4000 of the run"));
}

TEST_F(OtherMethodTest, IsRefusedInStep) {
  const absl::Status status =
      Hears([](RoundId, v1::RoundOpen* open) { open->mutable_step()->clear_deltas(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("round 0"));
}

TEST_F(OtherMethodTest, AsManyRatesAsLocalStepsAreAsked) {
  for (const std::vector<float>& rates :
       std::vector<std::vector<float>>{{}, {0.01f}, {0.01f, 0.01f, 0.01f}}) {
    const absl::Status status = Hears([&](RoundId, v1::RoundOpen* open) { SetRates(rates, open); });
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << rates.size();
    EXPECT_THAT(std::string(status.message()), HasSubstr("round 0"));
  }
}

// Positions would be read as frequencies where they are elements, or the other way round.
TEST_F(OtherMethodTest, IsRefusedInFormOfBlocks) {
  const absl::Status status = Hears([](RoundId, v1::RoundOpen* open) {
    std::string& as_dct = *open->mutable_step()->mutable_deltas()->mutable_as_dct();
    as_dct[0] = static_cast<char>(as_dct[0] ^ 1);
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
}

// Of 8: 4 would be one micro-batch a step.
TEST_F(OtherMethodTest, IsRefusedInSamplesOfSlot) {
  for (const uint32_t samples : {0, 2, 6, 7, 12}) {
    const absl::Status status = Hears(
        [samples](RoundId, v1::RoundOpen* open) { open->mutable_slots(0)->set_samples(samples); });
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << samples;
    EXPECT_THAT(std::string(status.message()), HasSubstr("round 0"));
  }
}

TEST_F(OtherMethodTest, IsRefusedInRecord) {
  const std::vector<std::function<void(v1::RoundHeader*)>> changes = {
      [](v1::RoundHeader* header) { header->mutable_step()->clear_deltas(); },
      [](v1::RoundHeader* header) {
        header->mutable_step()->mutable_deltas()->add_inner_rate_bits(0);
      }};
  for (const auto& change : changes) {
    const auto aggregator = Aggregate(tiny_, deltas_);
    RecordingExchange exchange(aggregator.get());
    exchange.change_record = change;
    const WorkerResult result = Train(&exchange);
    EXPECT_EQ(result.status.code(), absl::StatusCode::kInvalidArgument) << result.status;
    EXPECT_EQ(result.summary.rounds_applied, 0u);
  }
}

TEST_F(OtherMethodTest, IsRefusedBySigns) {
  for (const bool in_record : {false, true}) {
    const auto aggregator = Aggregate(tiny_, tiny_.Config(1, 2, /*overlap=*/0));
    RecordingExchange exchange(aggregator.get());
    const auto add = [](v1::StepParameters* step) {
      step->mutable_deltas()->add_inner_rate_bits(0);
    };
    if (in_record)
      exchange.change_record = [&](v1::RoundHeader* header) { add(header->mutable_step()); };
    else
      exchange.change_open = [&](RoundId, v1::RoundOpen* open) { add(open->mutable_step()); };
    const WorkerResult result = Train(&exchange);
    EXPECT_EQ(result.status.code(), absl::StatusCode::kInvalidArgument) << result.status;
    EXPECT_EQ(result.summary.rounds_applied, 0u);
  }
}

}  // namespace
}  // namespace distro::worker
