// What the round thread does: finds the due task and executes it, with heavy work outside the
// mutex.
//
// Starts no thread: the one that calls Step() (RunHost's, or a test) is the round thread. State
// shared with other threads is in SharedRun.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/method/base/round_method.h"
#include "server/round/next_task.h"
#include "server/round/operator_decisions.h"
#include "server/round/recorder.h"
#include "server/round/shared_run.h"

namespace distro::server {

class RoundThread {
 public:
  // Borrowed.
  RoundThread(SharedRun* shared, OperatorDecisions* decisions)
      : shared_(shared),
        context_(shared->context),
        decisions_(decisions),
        recorder_(context_.files.rounds, context_.run->layout->segments()) {}

  // As RoundManager's.
  absl::StatusOr<absl::Duration> Step();

 private:
  RoundTask FindTask();
  absl::Status Do(const RoundTask& task);
  // Returns OK if the step will be retried.
  absl::Status HandleError(const absl::Status& error);

  absl::Status WriteStart();
  void OpenRound();
  void ReopenRound();
  absl::Status CloseSegments(absl::Span<const ClosedSegment> closed);
  absl::Status PublishSegment(RoundId round, const ClosedSegment& closed,
                              const SegmentResult& result);
  absl::Status CommitRound();
  std::string MakeHeader();
  void FinishRound(const v1::RoundHeader& header);
  void FinishRun();

  SharedRun* const shared_;
  const RunContext& context_;  // of shared_
  OperatorDecisions* const decisions_;
  Recorder recorder_;
  uint64_t empty_rounds_ = 0;  // the last ones: without an update, since all workers abstained
};

}  // namespace distro::server
