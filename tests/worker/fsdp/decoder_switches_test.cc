// A decoder with every switch: biases and norms of heads are sharded, masks and layers without RoPE
// computed, as the parts that a Llama has.
#include <cmath>
#include <cstring>

#include "gtest/gtest.h"
#include "tests/worker/fsdp/node.h"
#include "tests/worker/model/tiny_model.h"

namespace distro::worker {
namespace {

using ::distro::worker::testing::Node;
using ::distro::worker::testing::RandomTokens;

constexpr int kSequences = 2, kPositions = 9, kRanks = 3;
constexpr DecoderKind kEverySwitch = {.model_type = "llama",
                                      .class_name = "",
                                      .qkv_bias = true,
                                      .qk_norm = true,
                                      .windows = Windows::kUpperLayers};

// The last layer has a window, the second no RoPE.
DecoderConfig Config() {
  DecoderConfig config = testing::TinyConfig();
  config.layers = 3;
  config.kind = &kEverySwitch;
  config.window = 4;
  config.windowed[2] = true;
  config.without_rope[1] = true;
  return config;
}

std::vector<float> Gradient(int ranks, const FsdpOptions& options) {
  std::vector<std::vector<int32_t>> batches;
  for (int i = 0; i < kRanks; ++i)
    batches.push_back(RandomTokens(kSequences * (kPositions + 1), Config().vocab_size, i));
  return Node(Config(), ranks, options).Gradient(batches, kSequences).gradient;
}

double Norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return std::sqrt(sum);
}

TEST(DecoderSwitchesTest, RanksGetTheBitsOfOneThatAccumulates) {
  const std::vector<float> one = Gradient(1, {});
  EXPECT_GT(Norm(one), 0.1);
  for (const Sharding sharding : {Sharding::kNoShard, Sharding::kShardOptimizer,
                                  Sharding::kShardGradOp, Sharding::kFullShard}) {
    EXPECT_EQ(Gradient(kRanks, {.sharding = sharding}), one) << Name(sharding);
    EXPECT_EQ(Gradient(kRanks, {.sharding = sharding, .checkpoint_every = 1}), one)
        << Name(sharding);
  }
}

TEST(DecoderSwitchesTest, Bf16ComputesTheSameToItsPrecision) {
  const std::vector<float> exact = Gradient(1, {});
  std::vector<float> rounded = Gradient(1, {.param_dtype = FloatType::kBf16});
  for (size_t i = 0; i < exact.size(); ++i) rounded[i] -= exact[i];
  EXPECT_GT(Norm(rounded), 0);
  EXPECT_LE(Norm(rounded), 0.1 * Norm(exact));
}

}  // namespace
}  // namespace distro::worker
