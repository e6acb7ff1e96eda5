// A worker's round under the deltas method (docs/algorithm.md, "Deltas"): takes inner steps on the
// worker's copy, adds their outcome to the error buffer, sends the largest values of the buffer as
// an update, and subtracts the part that the result included. Works on a rank's runs of block rows,
// on its device: the buffer by kernels/deltas_backend.h, the steps by inner_backend.h and
// orthogonalizer.h. An operation enqueues all its work, then waits once.
//
// Below, functions of the round's numbers stand beside those of UpdateRule, which take them from
// the messages: for the lab and for tests.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/method/deltas/update.h"
#include "common/model/layout/layout.h"
#include "kernels/deltas_backend.h"
#include "kernels/deltas_twin_records.h"
#include "worker/rules/deltas/delta_readings.h"
#include "worker/rules/deltas/inner_optimizer.h"
#include "worker/rules/segment_parts.h"
#include "worker/rules/update_rule.h"

namespace distro::worker {

// One inner step.
struct InnerStep {
  float rate = 0;
  float clip_norm = 1;  // maximum norm of the gradient
};

// The parameters of a round, the same for all workers.
struct DeltaRound {
  float beta = 0;             // decay of the error buffer
  int k = 0;                  // positions per block
  std::vector<uint8_t> caps;  // [tensors]: the largest scale code
};

// UpdateRuleKind::block_bytes: positions u16 [blocks, K], signs i8 [blocks, K], codes u8 [blocks].
std::vector<int64_t> DeltaBlockBytes(int k);

class DeltaRule final : public UpdateRule {
 public:
  // The state, and the arguments below, have one span per run of the shard. `tensors`: of the
  // layout. `as_dct` [tensors]: the tensors sent as DCT (MuonTensors). `elements`, borrowed, zeros
  // for a new worker: the error buffer e; then the inner optimizer's two arrays, or none, if the
  // rule's caller takes the steps.
  DeltaRule(RuleShard shard, const InnerSettings& settings, std::vector<InnerTensor> tensors,
            std::vector<bool> as_dct, std::vector<RunSpans> elements);

  absl::Status TakeStep(const v1::StepParameters& step, int index, double norm,
                        const RunSpans& gradient, const RunSpans& copy) override;
  absl::StatusOr<bool> IsFinite(const v1::StepParameters& step, const RunSpans& parameters,
                                const RunSpans& copy) override;
  absl::Status Compress(const v1::StepParameters& step, const RunSpans& parameters,
                        const RunSpans& copy) override;
  absl::Status Abandon() override;
  absl::Status Forget() override;
  absl::Status Feedback(const CommittedRound& round, const DecodedRound& decoded,
                        int member) override;
  absl::Status Lookahead(float eta, const RunSpans& parameters, const RunSpans& out) override;
  absl::Span<const RunSpans> elements() const override { return elements_; }
  std::vector<absl::string_view> pending() const override;
  absl::Status RestorePending(const PendingUpdate& pending) override;
  uint64_t local_steps() const override { return inner_.steps(); }
  void RestoreLocalSteps(uint64_t steps) override { inner_.RestoreSteps(steps); }
  void CountLocalSteps(uint64_t steps) override;
  std::optional<DeltaSums> sums() const override { return sums_; }

  // Takes a step with the gradient at `x`, whose norm over the whole model, `norm`, is finite;
  // changes x and overwrites the gradient. Status: as InnerOptimizer::Step.
  absl::Status Step(const InnerStep& step, double norm, const RunSpans& gradient,
                    const RunSpans& x);

  // Whether beta * e + (begin - x) is finite. If it is not at some rank, the worker abstains. Here
  // and below, the status is the device's.
  absl::StatusOr<bool> IsFinite(float beta, const RunSpans& begin, const RunSpans& x);
  // e <- beta * e + (begin - x), and makes the pending update from it. Requires IsFinite.
  absl::Status Compress(const DeltaRound& round, const RunSpans& begin, const RunSpans& x);
  // The update of the last Compress, over the blocks of the shard, run after run, in host memory;
  // nullopt if there was none, or its feedback was applied.
  std::optional<DeltaRecordsView> update() const {
    return is_pending_ ? std::optional(records_.host()) : std::nullopt;
  }

  // The round of the pending update is committed: subtracts the included entries from e. `results`:
  // the result of each segment, nullptr if the worker was not included in it.
  absl::Status Feedback(absl::Span<const DeltaResult* const> results);
  // Drops the pending update as not included.
  void ForgetPending() { is_pending_ = false; }

  const RunSpans& error() const { return elements_[0]; }

 private:
  // The number of a pending record's positions inside the tensor; it is of this block of the run.
  int CountInside(int64_t record, size_t run, int64_t block) const;
  // That of all positions in the segments that have a result.
  int64_t CountSent(absl::Span<const DeltaResult* const> results) const;
  // Squares of the movement and of the new buffer; enqueued.
  void SumSquares(const RunSpans& begin, const RunSpans& x);
  // Sums of the update that was made from the buffer.
  DeltaSums::Update SumsOf(const DeltaRound& round) const;

  const RuleShard shard_;
  const std::vector<SegmentPart> parts_;
  const std::vector<bool> as_dct_;
  const std::vector<RunSpans> elements_;
  InnerOptimizer inner_;
  TwinRecords records_;  // of the pending update
  bool is_pending_ = false;
  TwinArray<uint32_t> not_finite_;  // [1], of IsFinite
  TwinArray<uint64_t> returned_;    // [1], of Feedback
  TwinArray<double> moved_;         // of the pieces of all runs; buffer_ too
  TwinArray<double> buffer_;
  DeltaSums sums_;
};

}  // namespace distro::worker
