// What the round thread does: finds the due task and executes it, with heavy work outside the
// mutex.
//
// Starts no thread: the one that calls Step() (RunHost's, or a test) is the round thread. State
// shared with other threads is in SharedRun.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/method/base/round_method.h"
#include "server/round/closing.h"
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

  // Does everything that is due, and returns the monotonic time at which to call again. Retries a
  // failing disk every second. An error is final: the process must stop, because another process
  // replaced it (fenced), or memory or files are damaged.
  absl::StatusOr<absl::Duration> Step();
  // How long the current Step() has taken; 0 between two. Long: the disk does not answer.
  // Thread-safe.
  absl::Duration StepTakes() const;
  // Blocks until there is something to do, until `until` (monotonic), or until RoundManager::Stop.
  void WaitForWork(absl::Duration until) { shared_->AwaitWork(until); }

 private:
  absl::StatusOr<absl::Duration> DoWhatIsDue();
  // Returns the due task. Its part that needs only the mutex is done already: the state is shown,
  // leases have expired, workers have entered, payloads of closed segments are in `closed`.
  RoundTask TakeTask(std::vector<ClosedSegment>* closed);
  absl::Status Do(const RoundTask& task, absl::Span<const ClosedSegment> closed);
  // Returns OK if the step will be retried.
  absl::Status HandleError(const absl::Status& error);

  absl::Status WriteStart();
  void OpenRound();
  void ReopenRound();
  absl::Status CombineSegments(absl::Span<const ClosedSegment> closed);
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
  std::optional<v1::StartHeader> start_;  // once made: a retry writes the same bytes
  uint64_t empty_rounds_ = 0;  // the last ones: without an update, since all workers abstained
  // Monotonic nanoseconds, when the current Step() began; kNoStep between two.
  static constexpr int64_t kNoStep = -1;
  std::atomic<int64_t> step_began_ = kNoStep;
};

}  // namespace distro::server
