#include "worker/model/decoder/decoder_units.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "common/model/decoder/decoder.h"
#include "common/model/logit_rows.h"
#include "worker/model/token_loss.h"

namespace distro::worker {
namespace {

// kMask only where a layer has a window that is shorter than the sequences.
enum Table { kCos, kSin, kMask };

const DecoderConfig& ConfigOf(const Architecture& model) {
  return static_cast<const Decoder&>(model).config();
}

// The parameters of a block, undefined where its kind has none, in the order of BlockTensors
// (common/model/decoder/decoder.cc).
struct BlockParameters {
  BlockParameters(const DecoderKind& kind, absl::Span<const at::Tensor> all) {
    size_t taken = 0;
    const auto next = [&](bool exists) { return exists ? all[taken++] : at::Tensor(); };
    attention_norm = next(true);
    query = next(true), query_bias = next(kind.qkv_bias);
    key = next(true), key_bias = next(kind.qkv_bias);
    value = next(true), value_bias = next(kind.qkv_bias);
    query_norm = next(kind.qk_norm), key_norm = next(kind.qk_norm);
    output = next(true);
    mlp_norm = next(true);
    gate = next(true), up = next(true), down = next(true);
  }

  at::Tensor attention_norm;
  at::Tensor query, query_bias, key, key_bias, value, value_bias;
  at::Tensor query_norm, key_norm;
  at::Tensor output, mlp_norm, gate, up, down;
};

at::Tensor Norm(const at::Tensor& x, const at::Tensor& weight, float eps) {
  return at::rms_norm(x, weight.sizes(), weight, eps);
}

at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return bias.defined() ? at::linear(x, weight, bias) : at::linear(x, weight);
}

// x [sequences, positions, heads * d] with the halves of each head turned against each other.
// Before heads are split: their elements are then neighbours in memory, and so are those of the
// tables.
at::Tensor Rotate(const at::Tensor& x, int64_t head_dim, const Batch& batch) {
  const at::Tensor other_halves =
      x.view({x.size(0), x.size(1), -1, head_dim}).roll(head_dim / 2, -1).view(x.sizes());
  return x * batch.tables[kCos].narrow(-1, 0, x.size(-1)) +
         other_halves * batch.tables[kSin].narrow(-1, 0, x.size(-1));
}

// [sequences, positions, heads * d] -> [sequences, heads, positions, d]
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

// `mask` [S, S] is added to the scores; undefined: each position sees all before it.
at::Tensor CausalAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const at::Tensor& mask) {
  const bool shares_heads = query.size(1) != key.size(1), is_causal = !mask.defined();
  std::optional<at::Tensor> attn_mask;
  if (mask.defined()) attn_mask = mask;
  const auto chosen = static_cast<at::SDPBackend>(
      at::_fused_sdp_choice(query, key, value, attn_mask, /*dropout_p=*/0.0, is_causal,
                            /*scale=*/{}, shares_heads));
  TORCH_CHECK(query.scalar_type() != at::kBFloat16 || chosen != at::SDPBackend::math,
              "Torch has no fused attention in bf16 for a head_dim of ", query.size(3),
              " on this device, and another would keep scores of all pairs of positions: take ",
              "--param_dtype f32");
  return at::scaled_dot_product_attention(query, key, value, attn_mask, /*dropout_p=*/0.0,
                                          is_causal, /*scale=*/{}, shares_heads);
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
  Block(const DecoderConfig& config, int layer, std::string name, std::vector<int> tensors)
      : Unit(std::move(name), std::move(tensors)),
        config_(config),
        rotates_(!config.without_rope[layer]),
        windowed_(config.windowed[layer]) {}

  at::Tensor Forward(absl::Span<const at::Tensor> parameters, const at::Tensor& input,
                     const Batch& batch) const override {
    const BlockParameters p(*config_.kind, parameters);
    const at::Tensor h =
        input + Attention(p, Norm(input, p.attention_norm, config_.rms_norm_eps), batch);
    const at::Tensor m = Norm(h, p.mlp_norm, config_.rms_norm_eps);
    return h + at::linear(at::silu(at::linear(m, p.gate)) * at::linear(m, p.up), p.down);
  }

 private:
  at::Tensor Attention(const BlockParameters& p, const at::Tensor& n, const Batch& batch) const {
    const int heads = config_.heads, kv_heads = config_.kv_heads;
    const at::Tensor query =
        SplitHeads(NormAndRotate(Linear(n, p.query, p.query_bias), p.query_norm, batch), heads);
    at::Tensor key =
        SplitHeads(NormAndRotate(Linear(n, p.key, p.key_bias), p.key_norm, batch), kv_heads);
    at::Tensor value = SplitHeads(Linear(n, p.value, p.value_bias), kv_heads);
    const at::Tensor mask = Mask(n.size(1), batch);
    // Torch's kernels for f32 and for masks on GPUs do not take shared heads (docs/decisions/0031).
    if (n.scalar_type() == at::kFloat || mask.defined()) {
      key = RepeatHeads(key, heads / kv_heads);
      value = RepeatHeads(value, heads / kv_heads);
    }
    const at::Tensor mixed = CausalAttention(query, key, value, mask);
    return at::linear(mixed.transpose(1, 2).reshape({n.size(0), n.size(1), -1}), p.output);
  }

  // Queries or keys x [B, S, heads * d], normalized and turned where the model does.
  at::Tensor NormAndRotate(const at::Tensor& x, const at::Tensor& norm, const Batch& batch) const {
    const at::Tensor normalized =
        norm.defined()
            ? Norm(x.view({x.size(0), x.size(1), -1, config_.head_dim}), norm, config_.rms_norm_eps)
                  .view(x.sizes())
            : x;
    return rotates_ ? Rotate(normalized, config_.head_dim, batch) : normalized;
  }

  // [S, S]; undefined where the window leaves out nothing.
  at::Tensor Mask(int64_t positions, const Batch& batch) const {
    if (!windowed_ || positions <= config_.window) return {};
    return batch.tables[kMask].narrow(1, 0, positions).contiguous();
  }

  const DecoderConfig config_;
  const bool rotates_;
  const bool windowed_;
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

// f32 [positions, positions]: 0 where row q sees column k, q - window < k <= q, otherwise -inf.
at::Tensor WindowMask(int window, int positions) {
  const at::Tensor seen =
      at::ones({positions, positions}, at::kBool).tril_().triu_(/*diagonal=*/1 - window);
  return at::zeros({positions, positions}, at::kFloat)
      .masked_fill_(seen.logical_not_(), -std::numeric_limits<float>::infinity());
}

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
    units.push_back(std::make_unique<Block>(config, unit - 1, std::move(specs[unit].name),
                                            std::move(tensors[unit])));
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
  std::vector<at::Tensor> tables = {both.cos().repeat({1, config.heads}),
                                    sin.repeat({1, config.heads})};
  if (config.window > 0 && positions > config.window)
    tables.push_back(WindowMask(config.window, positions));
  return tables;
}

}  // namespace distro::worker
