// Writes the open round to the log, and tracks failures of the disk.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/run/record/committed_round.h"
#include "server/log/round_log.h"
#include "server/round/run_observer.h"

namespace distro::server {

// Writes results as segments close, and the header at the end. After an error, each retry writes a
// new file with the same bytes.
//
// Passive: used by the round thread, outside the mutex of SharedRun, because it waits for the disk.
//
//   recorder.Open(round);
//   recorder.Add(segment, result);                        // each segment once
//   if (!recorder.has_header()) recorder.SetHeader(...);
//   recorder.Commit();                                    // until it is OK
class Recorder {
 public:
  // `round_log` is borrowed.
  Recorder(RoundLog* round_log, uint32_t segments) : round_log_(round_log), results_(segments) {}

  void Open(RoundId round) { round_ = round; }
  // Writes a segment's result. After an error Commit() writes all of them.
  absl::Status Add(SegmentId segment, SharedBytes result);

  // Whether writing the record's end has started: a retry writes the same bytes.
  bool has_header() const { return !header_.empty(); }
  void SetHeader(std::string header) { header_ = std::move(header); }
  const std::string& header() const { return header_; }
  // Makes the record durable. FailedPrecondition: fenced. Internal: the record is invalid, so a
  // retry would fail too. Other errors: a retry may succeed.
  absl::Status Commit();
  // The round is over: discards it.
  void Clear();

 private:
  absl::Status WriteSegments();

  RoundLog* const round_log_;
  RoundId round_;
  std::optional<RecordWriter> record_;  // nullopt: not begun, or a write failed
  std::vector<SharedBytes> results_;    // [segments]
  std::vector<SegmentId> order_;        // in which results came: a retry writes the same bytes
  std::string header_;
};

// Reports failures of the disk, and stores when the next attempt is due.
//
// Passive: guarded by the mutex of SharedRun.
class DiskTrouble {
 public:
  DiskTrouble(Log* log, RunObserver* observer) : log_(log), observer_(observer) {}

  // A write failed while `head` was open or next. Logs the first failure, and a different one, but
  // not every repetition.
  void Failed(RoundId head, const absl::Status& error);
  void Wrote(RoundId head);
  // The error of the last write, without a path; empty if it succeeded.
  const std::string& error() const { return error_; }

  // Sets the monotonic time of the next attempt.
  void TryAgainAt(absl::Duration at) { retry_at_ = at; }
  absl::Duration retry_at() const { return retry_at_; }

 private:
  Log* const log_;
  RunObserver* const observer_;
  std::string error_;
  absl::Duration retry_at_ = -absl::InfiniteDuration();
};

}  // namespace distro::server
