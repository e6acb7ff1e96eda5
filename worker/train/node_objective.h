// The objective of a node: divides a slot's samples into micro-batches; rank j mod R computes
// micro-batch j, R at a time.
//
// Not thread-safe: the training thread owns it. Borrowed objects outlive it.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "distro/v1/run.pb.h"
#include "worker/node/node.h"
#include "worker/train/objective.h"
#include "worker/train/phase_clock.h"
#include "worker/train/sample_reader.h"

namespace distro::worker {

class NodeObjective final : public Objective {
 public:
  struct Dependencies {
    Node* node;
    const SampleReader* samples;
    const SampleReader* public_samples = nullptr;  // with local data
    PhaseClock* phases;
  };

  // Requires a micro-batch that divides every slot. `hold_back` is added to the time of each
  // gradient. `evaluation_samples`: maximum number of held-out samples to read; 0: all.
  NodeObjective(int micro_batch_samples, absl::Duration hold_back, uint64_t evaluation_samples,
                const Dependencies& deps);

  absl::StatusOr<Gradient> GradientOf(const v1::Slot& samples, GradientAt at,
                                      GoesOn goes_on) override;
  bool evaluates() const override { return true; }
  absl::StatusOr<double> HeldOutLoss(HeldOutText which, GoesOn goes_on) override;

 private:
  absl::Status Accumulate(const v1::Slot& slot, GradientAt at, GoesOn goes_on, double* loss);
  // Micro-batches [first, first + count) of the slot.
  absl::StatusOr<std::vector<double>> AccumulateRound(const v1::Slot& slot, GradientAt at,
                                                      int first, int count);

  const int micro_batch_samples_;
  const absl::Duration hold_back_;
  const uint64_t evaluation_samples_;
  const Dependencies deps_;
  std::vector<std::vector<int32_t>> tokens_;  // [ranks], of the round's micro-batches
};

}  // namespace distro::worker
