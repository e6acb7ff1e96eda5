// Tells several observers of one run, in their order. Thread-safe as they are.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "server/round/run_observer.h"

namespace distro::server {

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
