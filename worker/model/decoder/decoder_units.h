// Llama as units, with the arithmetic of LlamaForCausalLM in transformers: RMSNorm, RoPE,
// grouped-query attention, SwiGLU, tied or untied head. Linear weights are [out, in], products are
// x * W^T, there are no biases.
//
//   block   h = x + Wo attention(rope(Wq n), rope(Wk n), Wv n)    n = norm(x)
//           y = h + Wdown(silu(Wgate m) * Wup m)                  m = norm(h)
//   norm    x / sqrt(mean(x^2) + eps) * w, statistics in f32
//   rope    element i of a head turns with element i + d/2 (halves, not neighbours)
//           by position * theta^(-2i/d), in f32
//   heads   query head q reads KV head q / (heads / kv_heads); causal; scores times 1/sqrt(d)
//   loss    mean cross entropy over all B*S labels, in f32
#pragma once

#include <memory>
#include <vector>

#include "common/model/architecture.h"
#include "common/model/layout/manifest.h"
#include "worker/model/unit.h"

namespace distro::worker {

// Both require a model that is a Decoder; DecoderUnits a manifest that holds exactly model.Tensors().
std::vector<std::unique_ptr<Unit>> DecoderUnits(const Architecture& model,
                                                const Manifest& manifest);

// Of RoPE, f32 [positions, heads * d], for positions from 0 on: cosines, then sines, those of the
// first half of a head negative.
std::vector<at::Tensor> DecoderTables(const Architecture& model, int positions);

}  // namespace distro::worker
