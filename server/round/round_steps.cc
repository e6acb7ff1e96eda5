// RoundManager: what the round thread does.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "common/run/schedule.h"
#include "server/round/round_frames.h"
#include "server/round/round_manager.h"
#include "server/round/state_hashes.h"
#include "server/session/proto_time.h"

namespace distro::server {
namespace {

uint64_t IncludedTokens(const v1::RoundHeader& header, const std::vector<v1::Slot>& slots,
                        uint32_t sequence_length) {
  uint64_t tokens = 0;
  for (int i = 0; i < header.members_size(); ++i) {
    const bool included =
        std::ranges::any_of(header.segments(), [i](const v1::CommittedSegment& segment) {
          return (static_cast<uint8_t>(segment.included()[i / 8]) >> (i % 8) & 1) != 0;
        });
    if (included) tokens += uint64_t{slots[i].samples()} * sequence_length;
  }
  return tokens;
}

uint64_t ResultBytes(const v1::RoundHeader& header) {
  uint64_t bytes = 0;
  for (const v1::CommittedSegment& segment : header.segments()) bytes += segment.payload_bytes();
  return bytes;
}

}  // namespace

absl::Status RoundManager::Do(const Work& work) {
  switch (work.kind) {
    case Work::kNone:
      break;
    case Work::kStart:
      return WriteStart();
    case Work::kOpen:
      OpenRound();
      break;
    case Work::kReopen:
      ReopenRound();
      break;
    case Work::kClose:
      for (const ClosedSegment& closed : work.closed) DISTRO_RETURN_IF_ERROR(CloseSegment(closed));
      break;
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
  }
  return absl::OkStatus();
}

absl::Status RoundManager::WriteStart() {
  v1::StartHeader start;
  {
    absl::MutexLock lock(&mu_);
    const std::vector<std::string> names = membership_.TakingPart();
    uint64_t next_sample = 0;
    for (v1::Slot& slot : AssignSlots(names, run_->config.samples_per_worker(), &next_sample)) {
      *start.add_slots() = std::move(slot);
    }
    for (v1::Slot& slot : AssignSlots(names, run_->config.samples_per_worker(), &next_sample)) {
      *start.add_next_slots() = std::move(slot);
    }
    start.set_next_sample(next_sample);
    start.set_data_fingerprint(membership_.fingerprint());
  }
  const Sha256Digest& manifest = run_->layout->manifest().hash();
  start.set_run_id(run_->run_id);
  start.set_manifest_hash(manifest.data(), manifest.size());
  start.set_state_hash(run_->initial_snapshot.state_hash());
  DISTRO_RETURN_IF_ERROR(round_log_->WriteStart(start));
  absl::MutexLock lock(&mu_);
  membership_.FixFingerprint(start.data_fingerprint());
  slots_ = {start.slots().begin(), start.slots().end()};
  next_slots_ = {start.next_slots().begin(), start.next_slots().end()};
  next_sample_ = start.next_sample();
  log_->Info("run started", {{"run", run_->run_id},
                             {"workers", slots_.size()},
                             {"data", start.data_fingerprint()},
                             {"state_hash", ToHex(start.state_hash())}});
  return absl::OkStatus();
}

v1::RoundOpen RoundManager::MakeOpen() const {
  v1::RoundOpen open;
  *open.mutable_step() = StepOfRound(run_->config, head_);
  if (policy_.deadline != absl::InfiniteDuration()) {
    const absl::Duration left = round_->opened_at() + policy_.deadline - clock_->MonotonicNow();
    *open.mutable_deadline() = ToProto(std::max(left, absl::ZeroDuration()));
  }
  for (const v1::Slot& slot : round_->slots()) *open.add_slots() = slot;
  for (const v1::Slot& slot : next_slots_) *open.add_next_slots() = slot;
  return open;
}

void RoundManager::OpenRound() {
  v1::RoundOpen open;
  RoundId round;
  {
    absl::MutexLock lock(&mu_);
    round = head_;
    round_.emplace(head_, run_->layout->segments(), slots_, clock_->MonotonicNow());
    round_->SetExpected(membership_);
    opened_before_ = true;
    by_deadline_ = false;
    open = MakeOpen();
    observer_->OnRoundOpened(round, round_->expected());
    log_->Debug("round opened", {{"round", round.value()}, {"expected", round_->expected()}});
  }
  broadcast_.Open(MakeOpenFrame(epoch_, round, open));
}

void RoundManager::ReopenRound() {
  v1::RoundOpen open;
  RoundId round;
  {
    absl::MutexLock lock(&mu_);
    round = head_;
    const std::vector<std::string> names = ActiveWithoutSamples();
    round_->AddSlots(AssignSlots(names, run_->config.samples_per_worker(), &next_sample_));
    round_->SetExpected(membership_);
    open = MakeOpen();
    log_->Info(
        "round opened again with samples for more workers",
        {{"round", round.value()}, {"added", names.size()}, {"expected", round_->expected()}});
  }
  broadcast_.Reopen(
      MakeOpenFrame(epoch_, round, open),
      absl::UnavailableError("the round was opened again with samples for more workers"));
}

absl::Status RoundManager::CloseSegment(const ClosedSegment& closed) {
  RoundId round;
  {
    absl::MutexLock lock(&mu_);
    round = head_;
  }
  absl::StatusOr<SegmentResult> result =
      CombineSegment(*run_->layout, run_->config, round, closed.segment, closed.payloads, *clock_);
  if (!result.ok()) return result.status();
  const absl::Duration combined = clock_->MonotonicNow();
  broadcast_.Add(MakeSegmentFrames(epoch_, round, closed.segment, *result->payload));
  const absl::Duration sent = clock_->MonotonicNow();
  observer_->OnSegmentResult(*result, sent - closed.last_in);
  observer_->OnPhase("broadcast", sent - combined);
  {
    absl::MutexLock lock(&mu_);
    round_->SetResult(closed.segment, *result);
  }
  results_[closed.segment.value()] = result->payload;
  if (writer_ == nullptr || !writer_->AddSegment(closed.segment, *result->payload).ok()) {
    writer_ = nullptr;  // StoreSegments writes all of them, and reports the error
  }
  if (writer_ == nullptr &&
      std::ranges::count(results_, nullptr) + 1 == static_cast<int64_t>(results_.size())) {
    (void)StoreSegments();  // the first segment of the round; an error comes again at the commit
  }
  observer_->OnPhase("log", clock_->MonotonicNow() - sent);
  return absl::OkStatus();
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

std::string RoundManager::MakeHeader() {
  absl::MutexLock lock(&mu_);
  v1::RoundHeader header;
  round_->FillHeader(membership_, &header);
  header.set_epoch(epoch_.value());
  *header.mutable_step() = StepOfRound(run_->config, head_);
  if (head_.value() + 2 < run_->config.rounds()) {
    for (v1::Slot& slot :
         AssignSlots(membership_.TakingPart(), run_->config.samples_per_worker(), &next_sample_)) {
      *header.add_slots() = std::move(slot);
    }
  }
  header.set_next_sample(next_sample_);
  header.set_predecessor_hash(round_log_->HashBefore(head_));
  *header.mutable_committed_at() = ToProto(clock_->WallNow());
  *header.mutable_duration() = ToProto(clock_->MonotonicNow() - round_->opened_at());
  header.set_reason(by_deadline_ ? "deadline" : "complete");
  return header.SerializeAsString();
}

absl::Status RoundManager::CommitRound() {
  const absl::Duration start = clock_->MonotonicNow();
  if (header_.empty()) header_ = MakeHeader();
  if (writer_ == nullptr) DISTRO_RETURN_IF_ERROR(StoreSegments());
  DISTRO_RETURN_IF_ERROR(writer_->Commit(header_));
  observer_->OnPhase("log", clock_->MonotonicNow() - start);
  v1::RoundHeader header;
  header.ParseFromString(header_);
  FinishRound(header);
  broadcast_.Commit(MakeCommitFrame(epoch_, RoundId(header.round()), header_));
  writer_ = nullptr;
  std::ranges::fill(results_, nullptr);
  header_.clear();
  return absl::OkStatus();
}

void RoundManager::FinishRound(const v1::RoundHeader& header) {
  std::optional<uint64_t> truth;
  if (header.round() == 0) truth = run_->initial_snapshot.state_hash();
  const StateHashReport hashes = CompareStateHashes(header, truth);
  if (!hashes.disagree.empty()) {
    observer_->OnStateHashMismatch(static_cast<int>(hashes.disagree.size()));
    log_->Error("state hashes differ", {{"round", header.round()},
                                        {"reference", ToHex(hashes.reference)},
                                        {"disagree", absl::StrJoin(hashes.disagree, ",")}});
  }
  absl::MutexLock lock(&mu_);
  const absl::Duration duration = clock_->MonotonicNow() - round_->opened_at();
  observer_->OnRoundCommitted(
      {.header = &header,
       .duration = duration,
       .by_deadline = by_deadline_,
       .result_bytes = ResultBytes(header),
       .tokens = IncludedTokens(header, round_->slots(), run_->config.sequence_length()),
       .loss = round_->MeanLoss()});
  log_->Info("round committed",
             {{"round", header.round()},
              {"workers", absl::StrCat(round_->contributors(), "/", header.members_size())},
              {"bytes", ResultBytes(header)},
              {"seconds", absl::ToDoubleSeconds(duration)},
              {"reason", header.reason()}});
  slots_ = std::exchange(next_slots_, {header.slots().begin(), header.slots().end()});
  head_ = head_.Next();
  round_.reset();
}

}  // namespace distro::server
