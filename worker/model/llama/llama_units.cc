#include "worker/model/llama/llama_units.h"

#include <algorithm>
#include <utility>

#include "common/model/llama/llama.h"

namespace distro::worker {
namespace {

enum Table { kCos, kSin };

const LlamaConfig& ConfigOf(const Architecture& model) {
  return static_cast<const Llama&>(model).config();
}

at::Tensor Norm(const at::Tensor& x, const at::Tensor& weight, float eps) {
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor mean_square = wide.square().mean(-1, /*keepdim=*/true);
  return weight * (wide * at::rsqrt(mean_square + eps)).to(x.scalar_type());
}

// x [B, heads, S, d] with the halves of d turned against each other.
at::Tensor Rotate(const at::Tensor& x, const Batch& batch) {
  const int64_t half = x.size(-1) / 2;
  const at::Tensor turned = at::cat({-x.narrow(-1, half, half), x.narrow(-1, 0, half)}, -1);
  return x * batch.tables[kCos].to(x.scalar_type()) +
         turned * batch.tables[kSin].to(x.scalar_type());
}

// [B, S, heads * d] -> [B, heads, S, d]
at::Tensor SplitHeads(const at::Tensor& x, int heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

// [B, kv_heads, S, d] -> [B, kv_heads * copies, S, d], the copies of a head side by side
at::Tensor RepeatHeads(const at::Tensor& x, int copies) {
  if (copies == 1) return x;
  return x.unsqueeze(2)
      .expand({x.size(0), x.size(1), copies, x.size(2), x.size(3)})
      .reshape({x.size(0), x.size(1) * copies, x.size(2), x.size(3)});
}

class Embedding : public Unit {
 public:
  using Unit::Unit;
  at::Tensor Forward(absl::Span<const at::Tensor> parameters, const at::Tensor& /*input*/,
                     const Batch& batch) const override {
    return at::embedding(parameters[0], batch.tokens);
  }
};

class Block : public Unit {
 public:
  enum Parameter { kInputNorm, kQuery, kKey, kValue, kOutput, kPostNorm, kGate, kUp, kDown };

  Block(const LlamaConfig& config, std::string name, std::vector<int> tensors)
      : Unit(std::move(name), std::move(tensors)), config_(config) {}

  at::Tensor Forward(absl::Span<const at::Tensor> p, const at::Tensor& input,
                     const Batch& batch) const override {
    const at::Tensor h =
        input + Attention(p, Norm(input, p[kInputNorm], config_.rms_norm_eps), batch);
    const at::Tensor m = Norm(h, p[kPostNorm], config_.rms_norm_eps);
    return h + at::linear(at::silu(at::linear(m, p[kGate])) * at::linear(m, p[kUp]), p[kDown]);
  }

 private:
  at::Tensor Attention(absl::Span<const at::Tensor> p, const at::Tensor& n,
                       const Batch& batch) const {
    const int copies = config_.heads / config_.kv_heads;
    const at::Tensor query = Rotate(SplitHeads(at::linear(n, p[kQuery]), config_.heads), batch);
    const at::Tensor key = Rotate(SplitHeads(at::linear(n, p[kKey]), config_.kv_heads), batch);
    const at::Tensor value = SplitHeads(at::linear(n, p[kValue]), config_.kv_heads);
    const at::Tensor mixed = at::scaled_dot_product_attention(
        query, RepeatHeads(key, copies), RepeatHeads(value, copies), /*attn_mask=*/{},
        /*dropout_p=*/0.0, /*is_causal=*/true);
    return at::linear(mixed.transpose(1, 2).reshape({n.size(0), n.size(1), -1}), p[kOutput]);
  }

  const LlamaConfig config_;
};

class Head : public Unit {
 public:
  Head(float eps, std::string name, std::vector<int> tensors)
      : Unit(std::move(name), std::move(tensors)), eps_(eps) {}

  at::Tensor Forward(absl::Span<const at::Tensor> parameters, const at::Tensor& input,
                     const Batch& batch) const override {
    const at::Tensor logits =
        at::linear(Norm(input, parameters[0], eps_), parameters[1]).to(at::kFloat);
    if (!batch.labels.defined()) return logits;
    return at::cross_entropy_loss(logits.flatten(0, 1), batch.labels.flatten());
  }

 private:
  const float eps_;
};

}  // namespace

std::vector<std::unique_ptr<Unit>> LlamaUnits(const Architecture& model, const Manifest& manifest) {
  const LlamaConfig& config = ConfigOf(model);
  std::vector<UnitSpec> specs = model.Units();
  std::vector<std::vector<int>> tensors = UnitTensors(model, manifest);
  std::vector<std::unique_ptr<Unit>> units;
  units.push_back(
      std::make_unique<Embedding>(std::move(specs.front().name), std::move(tensors.front())));
  for (int unit = 1; unit <= config.layers; ++unit) {
    units.push_back(
        std::make_unique<Block>(config, std::move(specs[unit].name), std::move(tensors[unit])));
  }
  units.push_back(std::make_unique<Head>(config.rms_norm_eps, std::move(specs.back().name),
                                         std::move(tensors.back())));
  return units;
}

std::vector<at::Tensor> LlamaTables(const Architecture& model, int positions) {
  const LlamaConfig& config = ConfigOf(model);
  const at::Tensor even = at::arange(0, config.head_dim, 2, at::kFloat);
  const at::Tensor frequency = at::pow(config.rope.theta, even / config.head_dim).reciprocal();
  if (config.rope.scaling.has_value()) {
    auto* const each = frequency.data_ptr<float>();
    std::transform(each, each + frequency.numel(), each,
                   [&](float f) { return ScaledFrequency(*config.rope.scaling, f); });
  }
  const at::Tensor angle = at::outer(at::arange(positions, at::kFloat), frequency);
  const at::Tensor both = at::cat({angle, angle}, -1);
  return {both.cos(), both.sin()};
}

}  // namespace distro::worker
