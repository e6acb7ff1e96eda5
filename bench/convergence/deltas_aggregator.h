// The aggregator of the lab's runs of the deltas method: makes the parameters of each round, and
// the result of the workers' messages. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "bench/convergence/delta_bytes.h"
#include "bench/convergence/delta_messages.h"
#include "bench/convergence/deltas_settings.h"
#include "bench/convergence/deltas_worker.h"
#include "common/method/deltas/combine.h"
#include "common/method/deltas/update.h"
#include "common/model/layout/layout.h"
#include "common/run/round/agreement.h"
#include "distro/v1/run.pb.h"

namespace distro::worker {

// The result of a round: applied by all replicas, and the basis of the workers' feedback.
struct DeltasOutcome {
  DeltaResult result;         // of the real system
  RoundedMeans means;         // the same; of variants what they have in its place
  DeltaMeans returned;        // of variants: the positions of which feedback is taken
  std::vector<int> included;  // workers
  float alpha = 1;
  double decay = 0;  // of the parameters, with decay_in_update
};

class DeltasAggregator {
 public:
  // Everything is borrowed.
  DeltasAggregator(const DeltasSettings* settings, const v1::RunConfig* config,
                   const BlockForms* forms);

  // The parameters of round `round`, whose window of `steps` inner steps begins with step `step` of
  // the run.
  DeltaRound Open(uint64_t round, uint64_t step, int steps);
  // `workers` [W]: those that take part, nullptr for others. All of them have an update; those that
  // are not included are informed.
  DeltasOutcome Close(absl::Span<DeltasWorker* const> workers);

  // Of the first worker.
  uint64_t sent_bytes() const { return sent_bytes_; }
  uint64_t received_bytes() const { return received_bytes_; }
  // The first round after which a worker was suspected, by worker.
  const std::map<int, uint64_t>& suspected() const { return suspected_; }

 private:
  bool Misses(int worker) const;
  // Replaces an attacker's update, which is among `updates` [W].
  void Falsify(size_t worker, std::vector<DeltaUpdate>* updates) const;
  void FollowScales(const std::vector<DeltaUpdate>& updates, const std::vector<int>& included);
  void ClipNorms(absl::Span<DeltasWorker* const> workers, const std::vector<int>& included) const;
  void Compare(const std::vector<int>& included, const PairCounts& pairs);
  void Combine(const std::vector<DeltaUpdate>& updates,
               const std::vector<const DeltaMessage*>& messages, DeltasOutcome* outcome);

  const DeltasSettings& settings_;
  const v1::RunConfig& config_;
  const BlockForms& forms_;
  const Layout& layout_;
  // Of the open round:
  uint64_t round_ = 0;
  uint64_t step_ = 0;
  std::vector<float> rates_;  // of its inner steps
  std::vector<uint8_t> caps_;
  // Of all rounds before:
  std::vector<std::optional<uint8_t>> medians_;  // [tensors]: of the largest codes
  Agreement agreement_;
  std::map<int, uint64_t> suspected_;
  DeltaBytes bytes_;
  uint64_t sent_bytes_ = 0;
  uint64_t received_bytes_ = 0;
};

}  // namespace distro::worker
