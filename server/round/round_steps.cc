// RoundManager: what the round thread does.
#include <algorithm>
#include <utility>

#include "common/base/checksum.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "common/round/record.h"
#include "common/rpc/proto_time.h"
#include "common/run/schedule.h"
#include "server/round/round_manager.h"
#include "server/subscription/frame_ring.h"

namespace distro::server {
namespace {

constexpr int kMaxCombiningThreads = 8;  // each holds the votes of a segment: 134 MB at most

}  // namespace

absl::Status RoundManager::Do(const Work& work) {
  switch (work.kind) {
    case Work::kNone:
      break;
    case Work::kAdmission:
      return WriteAdmission();
    case Work::kStart:
      return WriteStart();
    case Work::kOpen:
      OpenRound();
      break;
    case Work::kReopen:
      ReopenRound();
      break;
    case Work::kClose:
      return CloseSegments(work.closed);
    case Work::kCommit:
      return CommitRound();
    case Work::kDone: {
      {
        absl::MutexLock lock(&mu_);
        SetReason(v1::RUN_STATE_DONE, "all rounds are committed");
      }
      broadcast_.End(absl::OkStatus());
      break;
    }
    case Work::kDrained:
      EndNow();
      break;
  }
  return absl::OkStatus();
}

absl::Status RoundManager::WriteStart() {
  v1::StartHeader start;
  {
    absl::MutexLock lock(&mu_);
    start = MakeStartHeader({.run_id = run_->run_id,
                             .data_fingerprint = membership_.fingerprint(),
                             .state_hash = run_->initial_snapshot.state_hash()},
                            layout(), run_->config, membership_.TakingPart());
  }
  DISTRO_RETURN_IF_ERROR(round_log_->WriteStart(start));
  absl::MutexLock lock(&mu_);
  membership_.FixFingerprint(start.data_fingerprint());
  plan_ = PlanOf(start);
  NoteDiskSuccess();
  log_->Info("run started", {{"run", run_->run_id},
                             {"workers", plan_.slots.size()},
                             {"data", start.data_fingerprint()},
                             {"state_hash", ToHex(start.state_hash())}});
  return absl::OkStatus();
}

v1::RoundOpen RoundManager::MakeOpen() const {
  v1::RoundOpen open;
  *open.mutable_step() = StepOfRound(run_->config, head_);
  if (deadline_ != absl::InfiniteDuration()) {
    const absl::Duration left = round_->opened_at() + deadline_ - clock_->MonotonicNow();
    *open.mutable_deadline() = ToProto(std::max(left, absl::ZeroDuration()));
  }
  for (const v1::Slot& slot : round_->slots()) *open.add_slots() = slot;
  for (const v1::Slot& slot : plan_.next_slots) *open.add_next_slots() = slot;
  return open;
}

void RoundManager::OpenRound() {
  v1::RoundOpen open;
  RoundId round;
  {
    absl::MutexLock lock(&mu_);
    round = head_;
    const absl::Duration now = clock_->MonotonicNow();
    round_.emplace(head_, run_->layout->segments(), plan_.slots, now, DrawAudited(head_));
    deadline_ = adaptive_deadline_.Deadline();
    update_times_.Open(head_, now);
    round_->SetExpected(membership_);
    opened_before_ = true;
    by_deadline_ = false;
    open = MakeOpen();
    observer_->OnRoundOpened(round, round_->expected());
    log_->Debug("round opened", {{"round", round.value()}, {"expected", round_->expected()}});
  }
  broadcast_.Open(MakeOpenFrame(epoch_, round, open, clock_->MonotonicNow()));
}

void RoundManager::ReopenRound() {
  v1::RoundOpen open;
  RoundId round;
  {
    absl::MutexLock lock(&mu_);
    round = head_;
    const std::vector<std::string> names = CountedWithoutSamples();
    round_->AddSlots(AssignSlots(names, run_->config.samples_per_worker(), &plan_.next_sample));
    round_->SetExpected(membership_);
    open = MakeOpen();
    log_->Info(
        "round opened again with samples for more workers",
        {{"round", round.value()}, {"added", names.size()}, {"expected", round_->expected()}});
  }
  broadcast_.Reopen(
      MakeOpenFrame(epoch_, round, open, clock_->MonotonicNow()),
      absl::UnavailableError("the round was opened again with samples for more workers"));
}

// As many at a time as there are threads, so that the first results leave before the last segments are combined; where there are
// fewer, several threads share one.
absl::Status RoundManager::CloseSegments(absl::Span<const ClosedSegment> closed) {
  RoundId round;
  {
    absl::MutexLock lock(&mu_);
    round = head_;
  }
  const int threads = std::min(Cores(), kMaxCombiningThreads);
  while (!closed.empty()) {
    const auto batch = closed.first(std::min<size_t>(threads, closed.size()));
    closed.remove_prefix(batch.size());
    std::vector<absl::StatusOr<SegmentResult>> results(batch.size());
    std::vector<Votes> votes(batch.size());  // of segments that are audited
    const int threads_each = threads / static_cast<int>(batch.size());
    RunParallel(threads, static_cast<int64_t>(batch.size()), [&](int /*thread*/, int64_t i) {
      results[i] =
          CombineSegment(*run_->layout, run_->config, round, batch[i].segment, batch[i].payloads,
                         threads_each, *clock_, batch[i].audited.empty() ? nullptr : &votes[i]);
    });
    for (size_t i = 0; i < batch.size(); ++i)
      DISTRO_RETURN_IF_ERROR(PublishSegment(round, batch[i], results[i], votes[i]));
  }
  return absl::OkStatus();
}

absl::Status RoundManager::PublishSegment(RoundId round, const ClosedSegment& closed,
                                          const absl::StatusOr<SegmentResult>& result,
                                          const Votes& votes) {
  if (!result.ok()) return result.status();
  const absl::Duration combined = clock_->MonotonicNow();
  broadcast_.Add(MakeSegmentFrames(epoch_, round, closed.segment, *result->payload, combined));
  const absl::Duration sent = clock_->MonotonicNow();
  observer_->OnSegmentResult(*result, sent - closed.last_in);
  {
    absl::MutexLock lock(&mu_);
    round_->SetResult(closed.segment, *result);
  }
  results_[closed.segment.value()] = result->payload;
  StoreSegment(closed.segment);
  observer_->OnPhase("log", clock_->MonotonicNow() - sent);
  return closed.audited.empty() ? absl::OkStatus() : Audit(round, closed, votes);
}

// Writes a segment's result into the record. After an error StoreSegments writes all of them at the commit.
void RoundManager::StoreSegment(SegmentId segment) {
  const bool first =
      std::ranges::count(results_, nullptr) + 1 == static_cast<int64_t>(results_.size());
  if (writer_ == nullptr && !first) return;
  const absl::Status status = writer_ == nullptr
                                  ? StoreSegments()
                                  : writer_->AddSegment(segment, *results_[segment.value()]);
  if (status.ok()) return;
  writer_ = nullptr;
  NoteDiskError(status);
}

// Begins the record and writes the results that are there.
absl::Status RoundManager::StoreSegments() {
  RoundId round;
  {
    absl::MutexLock lock(&mu_);
    round = head_;
  }
  DISTRO_ASSIGN_OR_RETURN(std::unique_ptr<RecordWriter> writer, round_log_->Begin(round));
  for (uint32_t s = 0; s < results_.size(); ++s) {
    if (results_[s] != nullptr)
      DISTRO_RETURN_IF_ERROR(writer->AddSegment(SegmentId(s), *results_[s]));
  }
  writer_ = std::move(writer);
  return absl::OkStatus();
}

}  // namespace distro::server
