// The interface through which a run reports events to metrics. Calls come from any thread, some
// with the mutex of SharedRun held: be quick and do not call back. An observer overrides the events
// that it needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/method/base/round_method.h"
#include "distro/v1/round.pb.h"

namespace distro::server {

struct CommittedRoundInfo {
  const v1::RoundHeader* header = nullptr;  // borrowed
  absl::Duration duration;                  // Open to commit
  bool by_deadline = false;
  uint64_t result_bytes = 0;
  uint64_t tokens = 0;  // of the updates that are included
  std::optional<double> loss;
  std::optional<double> eval_loss = std::nullopt;  // median of the last evaluations
};

class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void OnRoundOpened(RoundId /*round*/, int /*expected*/) {}
  // A worker's update of a round is complete and in time.
  virtual void OnUpdateReceived() {}
  // `latency`: from the segment's last upload to its first result frame.
  virtual void OnSegmentResult(const SegmentResult& /*result*/, absl::Duration /*latency*/) {}
  virtual void OnRoundCommitted(const CommittedRoundInfo& /*info*/) {}
  virtual void OnStateHashMismatch(int /*workers*/) {}
  // A worker's state changed; one of kMemberReasons.
  virtual void OnMemberChange(absl::string_view /*reason*/) {}
  // An update arrived this long after its round was over. Once per worker and round.
  virtual void OnLateUpdate(absl::Duration /*lateness*/) {}
  // The last byte of a worker's update of `round` arrived this long after the round opened, even if
  // it was too late to count. Once per worker and round.
  virtual void OnUpdateTimed(const std::string& /*worker*/, RoundId /*round*/,
                             absl::Duration /*since_open*/) {}
  // A write to the log failed; the name of the disk's operation, or "other".
  virtual void OnLogError(absl::string_view /*operation*/) {}
  // Busy seconds of a phase: combine, encode, log, broadcast.
  virtual void OnPhase(absl::string_view /*phase*/, absl::Duration /*time*/) {}
};

// Forwards events to several observers, in order. As thread-safe as they are.
class ObserverList final : public RunObserver {
 public:
  // Borrowed.
  explicit ObserverList(std::vector<RunObserver*> observers) : observers_(std::move(observers)) {}

  void OnRoundOpened(RoundId round, int expected) override {
    for (RunObserver* o : observers_) o->OnRoundOpened(round, expected);
  }
  void OnUpdateReceived() override {
    for (RunObserver* o : observers_) o->OnUpdateReceived();
  }
  void OnSegmentResult(const SegmentResult& result, absl::Duration latency) override {
    for (RunObserver* o : observers_) o->OnSegmentResult(result, latency);
  }
  void OnRoundCommitted(const CommittedRoundInfo& info) override {
    for (RunObserver* o : observers_) o->OnRoundCommitted(info);
  }
  void OnStateHashMismatch(int workers) override {
    for (RunObserver* o : observers_) o->OnStateHashMismatch(workers);
  }
  void OnMemberChange(absl::string_view reason) override {
    for (RunObserver* o : observers_) o->OnMemberChange(reason);
  }
  void OnLateUpdate(absl::Duration lateness) override {
    for (RunObserver* o : observers_) o->OnLateUpdate(lateness);
  }
  void OnUpdateTimed(const std::string& worker, RoundId round, absl::Duration since_open) override {
    for (RunObserver* o : observers_) o->OnUpdateTimed(worker, round, since_open);
  }
  void OnLogError(absl::string_view operation) override {
    for (RunObserver* o : observers_) o->OnLogError(operation);
  }
  void OnPhase(absl::string_view phase, absl::Duration time) override {
    for (RunObserver* o : observers_) o->OnPhase(phase, time);
  }

 private:
  const std::vector<RunObserver*> observers_;
};

}  // namespace distro::server
