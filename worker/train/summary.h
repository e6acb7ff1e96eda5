// The summary of a training process: text to print at the end, and the same as JSON for scripts.
// Plain data.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/client/exchange/exchange.h"
#include "worker/fsdp/collective_time.h"
#include "worker/plan/memory_counter.h"
#include "worker/rules/deltas/delta_readings.h"
#include "worker/train/phase_clock.h"

namespace distro::worker {

// Why an update, or a part of it, was not included in its round.
enum class Exclusion {
  kLate,         // a segment closed before it arrived
  kProbation,    // the worker's votes do not count yet
  kAbsent,       // the record does not name the worker: it had left, or was quarantined
  kOtherSender,  // the record names another process of this worker's name
};
inline constexpr int kExclusions = 4;
absl::string_view ExclusionName(Exclusion exclusion);

struct TrainSummary {
  std::string worker;
  uint64_t incarnation = 0;  // of this process; the log's records name it
  std::string run_id;
  uint64_t parameters = 0;
  uint64_t next_round = 0;                       // the first round that is not in the parameters
  uint64_t rounds = 0;                           // of the run
  uint64_t rounds_applied = 0;                   // by this process
  uint64_t updates_sent = 0;                     // without abstentions
  uint64_t updates_excluded = 0;                 // with at least one segment not included ...
  std::array<uint64_t, kExclusions> excluded{};  // ... by reason
  uint64_t uncounted_in_a_row = 0;  // last rounds with samples for it that do not count its work
  std::string uncounted = {};       // how many of the last ones, and why (own_rounds.h)
  uint64_t resyncs = 0;             // times that the parameters were reloaded from a snapshot
  uint64_t nonfinite_steps = 0;
  uint64_t tokens = 0;  // trained on by this process
  // Of the last own step; not set before the first: the loss in nats a token, the norm before
  // clipping, the rate.
  std::optional<double> training_loss;
  std::optional<double> gradient_norm;
  std::optional<double> learning_rate;
  std::optional<double> momentum_norm;  // at the last evaluation
  std::optional<DeltaReadings> deltas;  // of a run of deltas
  MemoryByCategory memory = {};         // of the node's ranks
  TimeByCollective collectives = {};    // of the node's ranks
  std::optional<double> first_evaluation_loss;
  std::optional<double> last_evaluation_loss;
  std::optional<double> first_own_evaluation_loss;  // with local data, where the others are public
  std::optional<double> last_own_evaluation_loss;
  std::optional<uint64_t> state_hash;  // of the parameters at the end
  TransferStats transfer;
  std::array<absl::Duration, kPhases> phases;
  absl::Duration wall_time;
  std::string checkpoint_dir;       // empty: none was written
  uint64_t failed_checkpoints = 0;  // that could not be written, in a row until now
  uint64_t failed_saves = 0;        // the same, of the worker's state
};

// Several lines: loss, tokens, bytes up and down a round, reduction against sending f32 gradients,
// time split.
std::string SummaryText(const TrainSummary& summary);

// One JSON object; keys as the fields, durations in seconds.
std::string SummaryJson(const TrainSummary& summary);

}  // namespace distro::worker
