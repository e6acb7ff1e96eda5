// The status of a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "distro/v1/admin.pb.h"
#include "distro/v1/run.pb.h"
#include "server/session/worker.h"

namespace distro::server {

// A snapshot for pages, rpcs and metrics.
struct RunStatus {
  v1::RunState state = v1::RUN_STATE_WAITING;
  std::string reason;  // what it waits for
  EpochId epoch;
  RoundId round;                 // the head
  uint64_t rounds = 0;           // of the run
  std::string data_fingerprint;  // of the workers' data; empty before the run has started
  uint64_t log_hash = 0;         // of the last record
  std::string disk_error;        // why the last write failed, without a path; empty: it succeeded
  std::string mismatch;          // the last state hash that differed: round, owner, tensors
  absl::Duration deadline =
      absl::InfiniteDuration();  // of the open round, or of the last; from Open
  std::vector<Worker> workers;
  std::vector<double> agreement;      // [workers]: Agreement's score; 0 without votes
  std::vector<absl::Duration> since;  // [workers], monotonic: when it entered its state
  absl::Duration now;                 // monotonic: last_seen counts from the same origin
};

// "empty", "waiting", "training", "paused", "draining", "done": for metrics and pages.
inline std::string RunStateName(v1::RunState state) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::RunState_Name(state), "RUN_STATE_"));
}

}  // namespace distro::server
