#include "worker/fsdp/unit_driver.h"

#include <cmath>
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/fsdp/node.h"
#include "tests/worker/model/tiny_model.h"

namespace distro::worker {
namespace {

using ::distro::worker::testing::Flat;
using ::distro::worker::testing::Node;
using ::distro::worker::testing::NodeStep;
using ::distro::worker::testing::RandomTokens;

constexpr int kSequences = 2;
constexpr int kPositions = 9;

// No dimension is a multiple of 64, some tensors have one row of blocks, others three.
DecoderConfig OddConfig(bool tied) {
  return {.hidden_size = 72,
          .layers = 3,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 18,
          .intermediate_size = 100,
          .vocab_size = 130,
          .max_positions = 16,
          .rms_norm_eps = 1e-5f,
          .rope = {.theta = 10000},
          .tied_embeddings = tied,
          .initializer_range = 0.2f};
}

std::vector<std::vector<int32_t>> MicroBatches(int count) {
  std::vector<std::vector<int32_t>> batches;
  for (int i = 0; i < count; ++i) {
    batches.push_back(RandomTokens(kSequences * (kPositions + 1), 130, 100 + i));
  }
  return batches;
}

NodeStep Step(bool tied, int ranks, const FsdpOptions& options, int micro_batches) {
  return Node(OddConfig(tied), ranks, options).Gradient(MicroBatches(micro_batches), kSequences);
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The gradient that one rank accumulates without any of this: Model on a whole buffer.
NodeStep Plain(bool tied, int micro_batches) {
  Node node(OddConfig(tied), 1, {});
  NodeStep step;
  TensorBuffer gradient(node.layout());
  for (const auto& tokens : MicroBatches(micro_batches)) {
    step.losses.push_back(
        node.model()
            .LossAndGradient({.tokens = tokens, .sequences = kSequences}, node.parameters(),
                             step.losses.empty() ? Accumulation::kStore : Accumulation::kAdd,
                             &gradient)
            .value());
  }
  step.gradient = Flat(gradient);
  return step;
}

double Norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return std::sqrt(sum);
}

double Distance(std::vector<float> a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return Norm(a);
}

constexpr Sharding kStrategies[] = {Sharding::kNoShard, Sharding::kShardOptimizer,
                                    Sharding::kShardGradOp, Sharding::kFullShard};

// strategy, ranks, tied embeddings
class UnitDriverTest : public ::testing::TestWithParam<std::tuple<Sharding, int, bool>> {
 protected:
  Sharding sharding() const { return std::get<0>(GetParam()); }
  int ranks() const { return std::get<1>(GetParam()); }
  bool tied() const { return std::get<2>(GetParam()); }
};

// 7 micro-batches: in the last round some ranks have none, for every number of ranks but 1.
TEST_P(UnitDriverTest, RanksGetTheBitsOfOneThatAccumulates) {
  const NodeStep expected = Plain(tied(), 7);
  const NodeStep actual = Step(tied(), ranks(), {.sharding = sharding()}, 7);
  EXPECT_EQ(actual.losses, expected.losses);
  EXPECT_GT(Norm(expected.gradient), 0.1);
  EXPECT_TRUE(SameBits(actual.gradient, expected.gradient))
      << Distance(actual.gradient, expected.gradient);
  if (sharding() != Sharding::kNoShard) return;
  for (const auto& own : actual.by_rank) EXPECT_TRUE(SameBits(own, expected.gradient));
}

// What is computed again, and how far ahead is gathered, changes no bit.
TEST_P(UnitDriverTest, CheckpointingAndPrefetchChangeNoBit) {
  const NodeStep expected = Plain(tied(), 3);
  for (const int checkpoint_every : {1, 2}) {
    for (const int prefetch : {0, 2, 9}) {
      const NodeStep actual = Step(tied(), ranks(),
                                   {.sharding = sharding(),
                                    .checkpoint_every = checkpoint_every,
                                    .prefetch_units = prefetch},
                                   3);
      EXPECT_TRUE(SameBits(actual.gradient, expected.gradient))
          << "every " << checkpoint_every << " prefetch " << prefetch;
      EXPECT_EQ(actual.losses, expected.losses);
    }
  }
}

TEST_P(UnitDriverTest, LossesAreThoseOfTheModel) {
  Node node(OddConfig(tied()), ranks(), {.sharding = sharding()});
  const auto batches = MicroBatches(std::max(1, ranks() - 1));
  const std::vector<double> losses = node.Losses(batches, kSequences);
  for (size_t i = 0; i < batches.size(); ++i) {
    EXPECT_EQ(losses[i],
              node.model()
                  .Loss({.tokens = batches[i], .sequences = kSequences}, node.parameters())
                  .value());
  }
}

// A gradient is bf16(exact part): a relative error of 2^-9 an element of each part, so at most that
// times the sum of the parts' norms; and the f32 sum's own error far below.
TEST_P(UnitDriverTest, ReductionInBf16IsWithinItsRounding) {
  const NodeStep exact = Step(tied(), ranks(), {.sharding = sharding()}, 3);
  const NodeStep actual =
      Step(tied(), ranks(), {.sharding = sharding(), .reduce_dtype = FloatType::kBf16}, 3);
  double parts = 0;
  for (int i = 0; i < 3; ++i) {
    parts +=
        Norm(Node(OddConfig(tied()), 1, {}).Gradient({MicroBatches(3)[i]}, kSequences).gradient);
  }
  EXPECT_LE(Distance(actual.gradient, exact.gradient), std::ldexp(parts, -8));
  EXPECT_EQ(Distance(actual.gradient, exact.gradient) > 0, ranks() > 1);
}

INSTANTIATE_TEST_SUITE_P(Strategies, UnitDriverTest,
                         ::testing::Combine(::testing::ValuesIn(kStrategies),
                                            ::testing::Values(1, 2, 3, 4), ::testing::Bool()));

// The same sums in another order: each of 6 additions rounds once, 2^-24 of at most the sum of the
// parts' norms.
TEST(ReductionTest, OnceAStepIsWithinTheRoundingOfTheSums) {
  double parts = 0;
  for (int i = 0; i < 7; ++i) {
    parts += Norm(Node(OddConfig(true), 1, {}).Gradient({MicroBatches(7)[i]}, kSequences).gradient);
  }
  const NodeStep exact = Plain(true, 7);
  for (const Sharding sharding : {Sharding::kNoShard, Sharding::kShardOptimizer}) {
    for (const int ranks : {1, 2, 3, 8}) {
      const NodeStep actual =
          Step(true, ranks, {.sharding = sharding, .reduce_every_micro_batch = false}, 7);
      EXPECT_LE(Distance(actual.gradient, exact.gradient), 6 * std::ldexp(parts, -24));
      EXPECT_EQ(actual.losses, exact.losses);
    }
  }
}

TEST(ReductionTest, OnceAStepInBf16RoundsTheRanksSums) {
  const NodeStep exact = Plain(false, 4);
  const NodeStep actual = Step(false, 2,
                               {.sharding = Sharding::kShardOptimizer,
                                .reduce_dtype = FloatType::kBf16,
                                .reduce_every_micro_batch = false},
                               4);
  const double distance = Distance(actual.gradient, exact.gradient);
  EXPECT_GT(distance, 0);
  EXPECT_LE(distance, std::ldexp(4 * Norm(exact.gradient), -8));
}

// bf16 has 8 bits: 2^-8 of a value each time an activation is stored. Some twenty operations a
// block add up like independent errors, so a few percent of the gradient; the loss of 4.9 within
// one.
TEST(ParamDtypeTest, Bf16ComputesTheSameToItsPrecision) {
  const NodeStep exact = Plain(true, 2);
  for (const Sharding sharding : kStrategies) {
    const NodeStep actual =
        Step(true, 2, {.sharding = sharding, .param_dtype = FloatType::kBf16}, 2);
    EXPECT_LE(Distance(actual.gradient, exact.gradient), 0.1 * Norm(exact.gradient));
    EXPECT_GT(Distance(actual.gradient, exact.gradient), 0);
    EXPECT_NEAR(actual.losses[0], exact.losses[0], 0.01 * exact.losses[0]);
  }
}

// The same arithmetic in every strategy: also with bf16 the bits are those of one rank, as long as
// sums are f32.
TEST(ParamDtypeTest, Bf16GivesTheSameBitsInEveryStrategy) {
  const NodeStep one = Step(true, 1, {.param_dtype = FloatType::kBf16}, 5);
  for (const Sharding sharding : kStrategies) {
    for (const int ranks : {2, 3}) {
      const NodeStep actual =
          Step(true, ranks, {.sharding = sharding, .param_dtype = FloatType::kBf16}, 5);
      EXPECT_TRUE(SameBits(actual.gradient, one.gradient)) << Name(sharding) << " " << ranks;
    }
  }
}

// Of no use on a CPU, where it is refused; the copies that it makes there are those of a GPU's
// driver.
TEST(CpuOffloadTest, ParametersThatAreCopiedUnitByUnitGiveTheSameBits) {
  const NodeStep expected = Plain(true, 3);
  for (const Sharding sharding : kStrategies) {
    for (const int ranks : {1, 2}) {
      const NodeStep actual = Step(true, ranks, {.sharding = sharding, .cpu_offload = true}, 3);
      EXPECT_TRUE(SameBits(actual.gradient, expected.gradient)) << Name(sharding) << " " << ranks;
    }
  }
}

}  // namespace
}  // namespace distro::worker
