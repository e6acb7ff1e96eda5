// A worker's deltas rule over the whole tensors of a small Llama, without a node: for tests of the
// rule, and of its saved state. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/model/decoder/decoder.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"
#include "worker/plan/shard_plan.h"
#include "worker/rules/host_backends.h"
#include "worker/rules/optimizer.h"
#include "worker/rules/update_rule.h"

namespace distro::testing {

// Several blocks a tensor, more than one tensor a segment.
inline constexpr DecoderConfig kSmallLlama = {.hidden_size = 32,
                                              .layers = 1,
                                              .heads = 2,
                                              .kv_heads = 1,
                                              .head_dim = 16,
                                              .intermediate_size = 100,
                                              .vocab_size = 80,
                                              .max_positions = 16,
                                              .rms_norm_eps = 1e-5f,
                                              .rope = {.theta = 10000},
                                              .tied_embeddings = false,
                                              .initializer_range = 0.02f};

using worker::SpansOf;

struct DeltaWorker {
  // Two local steps, K = 3; Muon steps the matrices inside. Parameters are 0.125, elements 0.
  DeltaWorker(const DecoderConfig& llama, int segment_blocks);
  DeltaWorker(const DeltaWorker&) = delete;
  DeltaWorker& operator=(const DeltaWorker&) = delete;

  // Draws the gradient of a step, with a norm above the clip.
  void DrawGradient(uint64_t seed, uint64_t index);
  // The local steps of a round, with gradients drawn from `seed`; x begins at the parameters.
  void TakeSteps(uint64_t seed);
  // Takes the steps and makes the pending update; returns its payloads.
  std::vector<SharedBytes> TakeRound(RoundId round, uint64_t seed);
  std::vector<SharedBytes> Encode() const;

  // The pending update of the whole model.
  worker::PendingUpdate pending() const;
  std::vector<TensorPieces> elements() const {
    return {PiecesOf(error), PiecesOf(first), PiecesOf(second)};
  }

  const Decoder model;
  const Layout layout;
  const v1::RunConfig config;
  const worker::UpdateRuleKind kind;
  const worker::ShardPlan plan;
  const worker::HostBackends host;
  v1::StepParameters step;  // caps 255
  double norm = 4;          // passed to the rule with each gradient
  TensorBuffer error, first, second;
  TensorBuffer parameters, x, gradient;
  std::unique_ptr<worker::UpdateRule> rule;
  std::unique_ptr<worker::Optimizer> optimizer;
};

}  // namespace distro::testing
