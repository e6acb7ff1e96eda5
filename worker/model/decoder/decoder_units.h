// A decoder as units, with the arithmetic of its class in transformers: RMSNorm, RoPE,
// grouped-query attention, SwiGLU, tied or untied head. Linear weights are [out, in], products are
// x * W^T. The kind (common/model/decoder/kinds.h) says which parts in brackets there are, for
// RoPE and windows by layer.
//
//   block   h = x + Wo attention(q, k, v)                         n = norm(x)
//           y = h + Wdown(silu(Wgate m) * Wup m)                  m = norm(h)
//           q = [rope]([norm](Wq n [+ bq])), k alike, v = Wv n [+ bv]; norm and rope by head
//   norm    x / sqrt(mean(x^2) + eps) * w, statistics in f32
//   rope    element i of a head turns with element i + d/2 (halves, not neighbours)
//           by position * theta^(-2i/d), in f32
//   heads   query head q reads KV head q / (heads / kv_heads); causal; scores times 1/sqrt(d);
//           [position q sees those after q - window]
//   loss    mean cross entropy over all B*S labels, in f32
#pragma once

#include <memory>
#include <vector>

#include "common/model/architecture.h"
#include "common/model/layout/manifest.h"
#include "worker/model/unit.h"

namespace distro::worker {

// Both require a model that is a Decoder; DecoderUnits a manifest that has exactly its Tensors().
std::vector<std::unique_ptr<Unit>> DecoderUnits(const Architecture& model,
                                                const Manifest& manifest);

// Of RoPE, f32 [positions, heads * d], for positions from 0 on: cosines, then sines, those of the
// first half of a head negative. With a window shorter than `positions` also f32
// [positions, positions], which is added to the scores.
std::vector<at::Tensor> DecoderTables(const Architecture& model, int positions);

}  // namespace distro::worker
