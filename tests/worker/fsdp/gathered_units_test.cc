// How much is gathered at a time, by count of the allocated bytes.
#include "worker/fsdp/gathered_units.h"

#include <algorithm>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/fsdp/node.h"
#include "tests/worker/fsdp/ranks.h"
#include "tests/worker/model/observed_copies.h"
#include "tests/worker/model/tiny_model.h"
#include "worker/fsdp/thread_communicator.h"
#include "worker/model/gradient.h"
#include "worker/model/unit.h"

namespace distro::worker {
namespace {

using ::distro::worker::testing::Node;
using ::distro::worker::testing::RandomTokens;
using ::distro::worker::testing::TinyConfig;
using ::testing::Each;

DecoderConfig DeepConfig(bool tied) {
  DecoderConfig config = TinyConfig(4, 2, tied);
  config.layers = 6;
  return config;
}

// The largest sum of what prefetch_units + 1 uses in a row need.
int64_t Bound(const Node& node, const FsdpOptions& options) {
  const std::vector<int> uses = UnitUses(static_cast<int>(node.model().units().size()), true);
  const size_t window = static_cast<size_t>(options.prefetch_units) + 1;
  int64_t most = 0;
  for (size_t first = 0; first < uses.size(); ++first) {
    std::set<int> flats;
    for (size_t i = first; i < std::min(first + window, uses.size()); ++i) {
      for (const int tensor : node.model().units()[uses[i]]->tensors()) {
        flats.insert(node.plan().place(tensor).unit);
      }
    }
    int64_t bytes = 0;
    for (const int flat : flats) {
      bytes += node.plan().units()[flat].elements * BytesOf(options.param_dtype);
    }
    most = std::max(most, bytes);
  }
  return most;
}

// prefetch, tied, dtype
class GatheredMemoryTest : public ::testing::TestWithParam<std::tuple<int, bool, FloatType>> {};

TEST_P(GatheredMemoryTest, IsThatOfPrefetchAndOneUnits) {
  const auto [prefetch, tied, dtype] = GetParam();
  for (const int checkpoint_every : {0, 1}) {
    const FsdpOptions options{.sharding = Sharding::kFullShard,
                              .param_dtype = dtype,
                              .checkpoint_every = checkpoint_every,
                              .prefetch_units = prefetch};
    Node node(DeepConfig(tied), 2, options);
    node.Gradient({RandomTokens(12, 40, 1), RandomTokens(12, 40, 2), RandomTokens(12, 40, 3)}, 1);
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(node.memory(rank).peak(MemoryCategory::kGathered), Bound(node, options));
      EXPECT_EQ(node.memory(rank).now(MemoryCategory::kGathered), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Options, GatheredMemoryTest,
                         ::testing::Combine(::testing::Values(0, 1, 2, 20), ::testing::Bool(),
                                            ::testing::Values(FloatType::kF32, FloatType::kBf16)));

TEST(GatheredUnitsTest, WholeParametersInF32AreUsedWhereTheyAre) {
  for (const Sharding sharding :
       {Sharding::kNoShard, Sharding::kShardOptimizer, Sharding::kShardGradOp}) {
    Node node(DeepConfig(false), 2, {.sharding = sharding});
    node.Gradient({RandomTokens(12, 40, 1), RandomTokens(12, 40, 2)}, 1);
    EXPECT_EQ(node.memory(0).peak(MemoryCategory::kGathered), 0);
  }
}

// Torch converts what leaves the host on the CPU, in memory that is not pinned.
TEST(GatheredUnitsTest, OffloadedParametersLeaveTheHostUnconverted) {
  for (const Sharding sharding : {Sharding::kNoShard, Sharding::kFullShard}) {
    const FsdpOptions options{
        .sharding = sharding, .param_dtype = FloatType::kBf16, .cpu_offload = true};
    const Node sharded(DeepConfig(true), 2, options), whole(DeepConfig(true), 1, options);
    testing::Communicators communicators = MakeThreadGroup(2, {})->TakeCommunicators();
    const auto body = [&](int rank, Communicator& communicator) -> absl::Status {
      MemoryCounter memory;
      GatheredUnits gathered(options, at::kCPU, whole.model(), sharded.plan(), whole.plan(),
                             &communicator, &memory);
      const RankShard& own =
          ShardsParameters(sharding) ? sharded.plan().shard(rank) : whole.plan().shard(0);
      const at::Tensor parameters = at::zeros({own.elements()}, at::kFloat);
      const testing::ObservedCopies observed(
          {parameters.const_data_ptr<float>(), static_cast<size_t>(parameters.numel())});
      const int units = static_cast<int>(whole.model().units().size());
      gathered.Begin(UnitUses(units, /*backward=*/false), parameters);
      for (int unit = 0; unit < units; ++unit) {
        const auto tensors = gathered.Acquire(unit);
        if (!tensors.ok()) return tensors.status();
        EXPECT_EQ(tensors->front().scalar_type(), at::kBFloat16);
        gathered.Release(unit);
      }
      EXPECT_GT(observed.copies(), 0);
      EXPECT_EQ(observed.conversions(), 0) << Name(sharding);
      return absl::OkStatus();
    };
    EXPECT_THAT(testing::OnEveryRank(communicators, body), Each(absl::OkStatus()));
  }
}

// The bytes of the model that a rank keeps, by strategy.
TEST(GatheredUnitsTest, FollowsStrategy) {
  const auto memory = [](Sharding sharding, MemoryCategory category) {
    Node node(DeepConfig(false), 2, {.sharding = sharding});
    node.Gradient({RandomTokens(12, 40, 1), RandomTokens(12, 40, 2)}, 1);
    return static_cast<double>(node.memory(0).peak(category));
  };
  const double whole = memory(Sharding::kNoShard, MemoryCategory::kParameters);
  EXPECT_EQ(memory(Sharding::kShardOptimizer, MemoryCategory::kGradients), whole);
  EXPECT_EQ(memory(Sharding::kShardGradOp, MemoryCategory::kParameters), whole);
  EXPECT_NEAR(memory(Sharding::kShardGradOp, MemoryCategory::kGradients), whole / 2, whole / 8);
  EXPECT_NEAR(memory(Sharding::kFullShard, MemoryCategory::kParameters), whole / 2, whole / 8);
  EXPECT_NEAR(memory(Sharding::kFullShard, MemoryCategory::kGradients), whole / 2, whole / 8);
}

}  // namespace
}  // namespace distro::worker
