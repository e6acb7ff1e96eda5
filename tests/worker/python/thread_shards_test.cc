// Shards of several threads give the bytes of one that has everything.
#include "worker/python/thread_shards.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/worker/delta_worker.h"
#include "worker/rules/optimizer.h"

namespace distro::worker {
namespace {

using testing::DeltaWorker;
using testing::kSmallLlama;

class ThreadShardsTest : public ::testing::TestWithParam<int> {
 protected:
  ThreadShardsTest() { worker_.TakeSteps(/*seed=*/4); }

  ThreadShards Shards(int threads) {
    ThreadShards shards(&worker_.layout, kind_, threads, &worker_.parameters);
    shards.SetCopy(SpansOf(&worker_.x));
    return shards;
  }

  std::vector<std::string> Payloads(const ThreadShards& shards) const {
    EXPECT_TRUE(shards
                    .ForEach([&](ShardRule& shard, int) {
                      return shard.rule().Compress(worker_.step, shard.arrays().parameters,
                                                   shard.arrays().copy);
                    })
                    .ok());
    std::vector<RankRule> rules;
    for (const ShardRule* shard : shards.shards())
      rules.push_back({.rule = &shard->rule(), .runs = shard->runs()});
    Optimizer optimizer(&worker_.layout, &kind_, std::move(rules));
    optimizer.SetPending(
        {.round = RoundId(3), .k = static_cast<int>(worker_.step.kept_per_block())});
    std::vector<std::string> payloads;
    for (const SharedBytes& payload : optimizer.Encode(/*threads=*/2)) payloads.push_back(*payload);
    return payloads;
  }

  // The norm of the steps, copy - parameters.
  double NormOfSteps(const ThreadShards& shards) const {
    std::vector<double> rows(BlockRows(worker_.layout));
    EXPECT_TRUE(
        shards
            .ForEach([&](ShardRule& shard, int) { return shard.SumOfSteps(absl::MakeSpan(rows)); })
            .ok());
    return NormOf(worker_.layout, rows);
  }
  // That of the error buffer.
  double NormOfError(const ThreadShards& shards) const {
    std::vector<double> rows(BlockRows(worker_.layout));
    EXPECT_TRUE(shards
                    .ForEach([&](ShardRule& shard, int) {
                      return shard.SumOf(shard.rule().elements()[0], absl::MakeSpan(rows));
                    })
                    .ok());
    return NormOf(worker_.layout, rows);
  }

  DeltaWorker worker_{kSmallLlama, /*segment_blocks=*/3};
  const UpdateRuleKind kind_ =
      LocalDeltas(worker_.config, &worker_.layout,
                  std::vector<bool>(worker_.layout.tensors().size()), LocalStepsBy::kCaller);
};

TEST_P(ThreadShardsTest, GiveBytesOfOneThread) {
  const ThreadShards alone = Shards(1), shared = Shards(GetParam());
  EXPECT_EQ(shared.shards().size(), static_cast<size_t>(GetParam()));
  for (int round = 0; round < 2; ++round)  // the second has the first's error buffer
    EXPECT_EQ(Payloads(shared), Payloads(alone));
  EXPECT_GT(NormOfError(shared), 0);
  EXPECT_EQ(NormOfError(shared), NormOfError(alone));
  int64_t records = 0;
  for (const ShardRule* shard : shared.shards()) records += shard->rule().sums()->update->records;
  EXPECT_EQ(records, alone.shards()[0]->rule().sums()->update->records);
}

TEST_P(ThreadShardsTest, MeasureStepsWithBitsOfOneThread) {
  EXPECT_GT(NormOfSteps(Shards(1)), 0);
  EXPECT_EQ(NormOfSteps(Shards(GetParam())), NormOfSteps(Shards(1)));
}

TEST_P(ThreadShardsTest, ScaleSteps) {
  const ThreadShards shards = Shards(GetParam());
  const double norm = NormOfSteps(shards);
  ASSERT_TRUE(shards.ForEach([](ShardRule& shard, int) { return shard.ScaleSteps(0.5f); }).ok());
  EXPECT_NEAR(NormOfSteps(shards), norm / 2, norm * 1e-5);
}

// More threads than block rows too.
INSTANTIATE_TEST_SUITE_P(Threads, ThreadShardsTest, ::testing::Values(1, 2, 3, 64));

}  // namespace
}  // namespace distro::worker
