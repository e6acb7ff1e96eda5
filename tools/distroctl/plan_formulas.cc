#include "tools/distroctl/plan_formulas.h"

#include <algorithm>
#include <cmath>

namespace distro::tools {
namespace {

constexpr double kBlockElements = 4096;
// 16-bit values a token and hidden element that the backward of one Llama block needs: inputs and outputs of its norms and
// projections. Attention without a stored score matrix.
constexpr double kSavedPerHidden = 17;

double Log2Choose(double n, double k) {
  return (std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1)) / std::log(2.0);
}

double UnitParameters(const LlamaConfig& c) {
  const double attention = 2.0 * c.hidden_size * c.head_dim * (c.heads + c.kv_heads);
  const double block = attention + 3.0 * c.hidden_size * c.intermediate_size + 2.0 * c.hidden_size;
  return std::max(block, static_cast<double>(c.vocab_size) * c.hidden_size);
}

double Activations(const LlamaConfig& c, const MemoryInputs& in) {
  const double tokens = static_cast<double>(in.micro_batch) * in.sequence_length;
  const double inputs_of_units = 2.0 * tokens * c.hidden_size * c.layers;
  const double one_block =
      2.0 * tokens * (kSavedPerHidden * c.hidden_size + 3.0 * c.intermediate_size);
  return inputs_of_units + one_block;
}

}  // namespace

double GradientBytes(double parameters) { return 2 * parameters; }

double ReceivedFromAll(double bytes, int n) { return bytes * (n - 1); }

double RingAllReduceBytes(double bytes, int n) { return 2 * bytes * (n - 1) / n; }

double Zero3Bytes(double bytes, int n) { return 3 * bytes * (n - 1) / n; }

double EntropyBytes(double blocks, int votes) {
  return blocks * (Log2Choose(kBlockElements, votes) + votes) / 8;
}

double LosslessResultBytes(double blocks, int n, int k) {
  return EntropyBytes(blocks, static_cast<int>(std::min<int64_t>(int64_t{n} * k, 4096)));
}

const char* StrategyName(Strategy strategy) {
  switch (strategy) {
    case Strategy::kNoShard:
      return "no_shard";
    case Strategy::kShardOptimizer:
      return "shard_optimizer";
    case Strategy::kShardGradOp:
      return "shard_grad_op";
    case Strategy::kFullShard:
      return "full_shard";
  }
  return "";
}

MemoryPlan MemoryOfGpu(const LlamaConfig& config, Strategy strategy, const MemoryInputs& inputs) {
  const auto n = static_cast<double>(ParameterCount(config));
  const auto part = [&](Strategy from) { return strategy >= from ? n / inputs.gpus : n; };
  MemoryPlan plan;
  plan.parameters = 4 * part(Strategy::kFullShard);
  plan.compute = 2 * (strategy == Strategy::kFullShard && inputs.gpus > 1
                          ? n / inputs.gpus + 2 * UnitParameters(config)
                          : n);
  plan.lookahead = inputs.overlap ? 4 * part(Strategy::kFullShard) : 0;
  plan.gradients = 4 * part(Strategy::kShardGradOp);
  plan.momentum = 4 * part(Strategy::kShardOptimizer);
  plan.pending = 6.0 * inputs.kept * part(Strategy::kShardOptimizer) / kBlockElements;
  plan.activations = Activations(config, inputs);
  plan.logits = (2.0 + 4.0 + 4.0) * inputs.micro_batch * inputs.sequence_length * config.vocab_size;
  return plan;
}

double PipelineBubble(int stages, int micro_batches) {
  return static_cast<double>(stages - 1) / (micro_batches + stages - 1);
}

}  // namespace distro::tools
