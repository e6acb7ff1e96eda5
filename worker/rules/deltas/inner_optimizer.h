// The ordinary optimizer that a worker of the deltas method runs on its copy of the parameters
// (docs/algorithm.md, "Deltas"): Muon for inner matrices of the model and AdamW for everything
// else, or AdamW for all. Workers need not agree on its results, but the ranks of a node together
// compute the bits of one rank.
//
//   InnerOptimizer inner(settings, tensors, shard, first, second);
//   inner.Step(rate, gradient_scale, g, x);  // of all runs of the shard
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/model/layout/matrix.h"
#include "worker/rules/deltas/whole_matrices.h"
#include "worker/rules/update_rule.h"

namespace distro::worker {

enum class InnerMethod { kAdamW, kMuon };

struct InnerSettings {
  InnerMethod method = InnerMethod::kMuon;
  float beta1 = 0.9f;  // AdamW, Loshchilov and Hutter, arXiv 1711.05101, algorithm 2
  float beta2 = 0.95f;
  float epsilon = 1e-8f;
  float mu = 0.95f;           // Muon
  float muon_scale = 0.2f;    // of the root of the longer side: steps as large as AdamW's
  int newton_schulz = 5;      // iterations
  float weight_decay = 0.1f;  // of tensors that decay
};

// A whole tensor: Muon steps whole matrices, even if ranks hold rows of them.
struct InnerTensor {
  MatrixShape matrix;
  bool decays = false;
  bool inside = false;  // at least two dimensions, and neither embedding nor head: Muon steps it
};

// The tensors of a model. `units`: as UnitTensors() (common/model/architecture.h); the first unit
// is the embedding, the last the head.
std::vector<InnerTensor> InnerTensors(const Layout& layout,
                                      const std::vector<std::vector<int>>& units);

// Which of them Muon steps: those inside, unless AdamW steps all.
std::vector<bool> MuonTensors(const InnerSettings& settings, absl::Span<const InnerTensor> tensors);

// Not thread-safe.
class InnerOptimizer {
 public:
  // The state is f32 [elements] for every run of the shard, zeros for a new worker; borrowed.
  // `first` is AdamW's first moment or Muon's buffer, `second` AdamW's second moment. `tensors`: of
  // the layout.
  InnerOptimizer(const InnerSettings& settings, std::vector<InnerTensor> tensors, RuleShard shard,
                 RunSpans first, RunSpans second);

  // x <- inner step (x, gradient_scale * gradient, rate), for every run. Steps are counted from 1,
  // for the correction of AdamW's moments. Several ranks step together. After an error, of the
  // device or of another rank, x and the state are invalid. Overwrites the gradients.
  absl::Status Step(float rate, float gradient_scale, const RunSpans& gradient, const RunSpans& x);
  // Resets the state to zeros. Enqueued.
  void Reset();

  uint64_t steps() const { return steps_; }
  void RestoreSteps(uint64_t steps) { steps_ = steps; }

 private:
  const InnerTensor& TensorOf(size_t run) const { return tensors_[shard_.runs[run].tensor]; }
  AdamWStep StepOf(const InnerTensor& tensor, float rate, float gradient_scale) const;
  MuonMove MoveOf(const InnerTensor& tensor, float rate) const;

  const InnerSettings settings_;
  const std::vector<InnerTensor> tensors_;
  const std::vector<bool> by_muon_;  // [tensors]
  const RuleShard shard_;
  const RunSpans first_;
  const RunSpans second_;
  const WholeMatrices matrices_;
  uint64_t steps_ = 0;
};

}  // namespace distro::worker
