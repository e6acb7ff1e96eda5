// Detects problems of a worker: its state, rounds that did not include it, a link or a machine
// slower than the others. So an operator with many workers finds the one that delays rounds. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/session/transition.h"
#include "server/session/worker.h"
#include "server/status/run_history.h"
#include "server/status/worker_rates.h"

namespace distro::server {

// The order in which workers are shown.
enum class Severity { kBad, kWarning, kGood, kGone };

// "bad", "warning", "good", "gone".
absl::string_view SeverityName(Severity severity);

struct WorkerFacts {
  Worker worker;
  absl::Duration in_state;  // since it entered its state
  absl::Duration silence;   // since its last message
  double agreement = 0;
  WorkerRounds rounds = {};
  WorkerRate rate = {};
};

// Typical values of the workers in a round: medians (of two values, the better one); not set if no
// worker has a value.
struct Typical {
  std::optional<double> update_seconds = {}, up_goodput = {}, down_goodput = {};
};
Typical TypicalOf(const std::vector<WorkerFacts>& workers);

struct Problem {
  Severity severity = Severity::kGood;
  std::string what = {};     // one sentence without a full stop; empty: nothing is wrong
  std::string runbook = {};  // name of its page; empty: there is none
};

// A worker counts as slow when its updates are in at least kSlowSeconds and kSlowFactor times later
// than the typical one; the cause is the link when its goodput is below 1 / kSlowFactor of the
// typical one.
inline constexpr double kSlowSeconds = 0.5;
inline constexpr double kSlowFactor = 1.5;

// A worker does not count when this many records in a row name it and do not include its work ...
inline constexpr uint64_t kMissedRounds = kMaxMissedRounds;
// ... and of one on probation, whose updates are there in time.
inline constexpr uint64_t kProbationRounds = 32;

Problem ProblemOf(const WorkerFacts& facts, const Typical& typical);

}  // namespace distro::server
