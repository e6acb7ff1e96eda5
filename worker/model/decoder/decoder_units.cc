#include "worker/model/decoder/decoder_units.h"

#include <algorithm>
#include <utility>

#include "common/model/decoder/decoder.h"
#include "common/model/logit_rows.h"
#include "worker/model/token_loss.h"

namespace distro::worker {
namespace {

enum Table { kCos, kSin };

const DecoderConfig& ConfigOf(const Architecture& model) {
  return static_cast<const Decoder&>(model).config();
}

at::Tensor Norm(const at::Tensor& x, const at::Tensor& weight, float eps) {
  return at::rms_norm(x, weight.sizes(), weight, eps);
}

// x [B, S, heads * d] with the halves of each head turned against each other. Before heads are
// split: their elements are then neighbours in memory, and so are those of the tables.
at::Tensor Rotate(const at::Tensor& x, int64_t head_dim, const Batch& batch) {
  const at::Tensor other_halves =
      x.view({x.size(0), x.size(1), -1, head_dim}).roll(head_dim / 2, -1).view(x.sizes());
  return x * batch.tables[kCos].narrow(-1, 0, x.size(-1)) +
         other_halves * batch.tables[kSin].narrow(-1, 0, x.size(-1));
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

at::Tensor CausalAttention(const at::Tensor& query, const at::Tensor& key,
                           const at::Tensor& value) {
  const bool shares_heads = query.size(1) != key.size(1);
  const auto chosen = static_cast<at::SDPBackend>(
      at::_fused_sdp_choice(query, key, value, /*attn_mask=*/{}, /*dropout_p=*/0.0,
                            /*is_causal=*/true, /*scale=*/{}, shares_heads));
  TORCH_CHECK(query.scalar_type() != at::kBFloat16 || chosen != at::SDPBackend::math,
              "Torch has no fused attention in bf16 for a head_dim of ", query.size(3),
              " on this device, and another would keep scores of all pairs of positions: take ",
              "--param_dtype f32");
  return at::scaled_dot_product_attention(query, key, value, /*attn_mask=*/{}, /*dropout_p=*/0.0,
                                          /*is_causal=*/true, /*scale=*/{}, shares_heads);
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

  Block(const DecoderConfig& config, std::string name, std::vector<int> tensors)
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
    const int heads = config_.heads, kv_heads = config_.kv_heads, d = config_.head_dim;
    const at::Tensor query = SplitHeads(Rotate(at::linear(n, p[kQuery]), d, batch), heads);
    at::Tensor key = SplitHeads(Rotate(at::linear(n, p[kKey]), d, batch), kv_heads);
    at::Tensor value = SplitHeads(at::linear(n, p[kValue]), kv_heads);
    // Torch's kernel for f32 on GPUs does not take shared heads (docs/decisions/0031).
    if (n.scalar_type() == at::kFloat) {
      key = RepeatHeads(key, heads / kv_heads);
      value = RepeatHeads(value, heads / kv_heads);
    }
    const at::Tensor mixed = CausalAttention(query, key, value);
    return at::linear(mixed.transpose(1, 2).reshape({n.size(0), n.size(1), -1}), p[kOutput]);
  }

  const DecoderConfig config_;
};

// What the head computes: nothing for padding. No view where there is none, whose gradient would be
// a copy.
at::Tensor WithoutPadding(const at::Tensor& input, const Batch& batch) {
  if (batch.position >= 0) return input.narrow(1, batch.position, 1);
  const bool padded = batch.labels.defined() && batch.labels.size(0) < input.size(0);
  return padded ? input.narrow(0, 0, batch.labels.size(0)) : input;
}

class Head : public Unit {
 public:
  Head(float eps, std::string name, std::vector<int> tensors)
      : Unit(std::move(name), std::move(tensors)), eps_(eps) {}

  at::Tensor Forward(absl::Span<const at::Tensor> parameters, const at::Tensor& input,
                     const Batch& batch) const override {
    const at::Tensor hidden = Norm(WithoutPadding(input, batch), parameters[0], eps_);
    const at::Tensor& weight = parameters[1];
    if (!batch.labels.defined()) return Logits(hidden, weight);
    return TokenLoss(
        hidden.flatten(0, 1), weight, batch.labels.flatten(),
        {.rows = LogitRows(weight.size(0)), .alignment = hidden.is_cpu() ? 1 : kLogitAlignment});
  }

 private:
  const float eps_;
};

}  // namespace

std::vector<std::unique_ptr<Unit>> DecoderUnits(const Architecture& model,
                                                const Manifest& manifest) {
  const DecoderConfig& config = ConfigOf(model);
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

std::vector<at::Tensor> DecoderTables(const Architecture& model, int positions) {
  const DecoderConfig& config = ConfigOf(model);
  const at::Tensor even = at::arange(0, config.head_dim, 2, at::kFloat);
  const at::Tensor frequency = at::pow(config.rope.theta, even / config.head_dim).reciprocal();
  if (config.rope.scaling.has_value()) {
    auto* const each = frequency.data_ptr<float>();
    std::transform(each, each + frequency.numel(), each,
                   [&](float f) { return ScaledFrequency(*config.rope.scaling, f); });
  }
  const at::Tensor angle = at::outer(at::arange(positions, at::kFloat), frequency);
  const at::Tensor both = at::cat({angle, angle}, -1);
  const at::Tensor sin = both.sin();
  sin.narrow(-1, 0, config.head_dim / 2).neg_();
  return {both.cos().repeat({1, config.heads}), sin.repeat({1, config.heads})};
}

}  // namespace distro::worker
