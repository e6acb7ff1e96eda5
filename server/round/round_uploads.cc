// RoundManager: uploads into the open round.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/round_log/log_reference.h"
#include "server/round/round_manager.h"

namespace distro::server {
namespace {

absl::Status CheckHashes(const v1::UploadHeader& header, const Layout& layout) {
  const auto count = static_cast<size_t>(header.tensor_hashes_size());
  if (count == 0) return absl::OkStatus();
  if (count != layout.tensors().size()) {
    return absl::InvalidArgumentError(absl::StrCat("tensor_hashes: ", count, " for a model of ",
                                                   layout.tensors().size(), " tensors"));
  }
  if (CombineTensorHashes(header.tensor_hashes()) == header.state_hash()) return absl::OkStatus();
  return absl::InvalidArgumentError("tensor_hashes: do not make the state hash");
}

}  // namespace

absl::Status RoundManager::CheckRound(RoundId round, const std::string& worker,
                                      absl::Duration now) {
  if (ended_) return DrainingError();
  const std::string where = absl::StrCat("round ", round.value());
  if (round < head_) {
    TimeUpdate(round, worker, now);
    return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "late",
                           absl::StrCat(where, ": is over: round ", head_.value(), " is next"));
  }
  if (round > head_) {
    return ErrorWithReason(
        absl::StatusCode::kFailedPrecondition, "wrong_round",
        absl::StrCat(where, ": has not begun: round ", head_.value(), " is next"));
  }
  if (!round_ && drain_ends_) return DrainingError();
  if (!round_ && paused_) {
    return ErrorWithReason(absl::StatusCode::kUnavailable, "paused",
                           absl::StrCat(where, ": does not open while the run is paused"));
  }
  if (!round_) {
    return ErrorWithReason(absl::StatusCode::kUnavailable, "not_open",
                           absl::StrCat(where, ": is not open yet"));
  }
  return absl::OkStatus();
}

absl::StatusOr<UploadTicket> RoundManager::BeginUpload(const v1::UploadHeader& header) {
  DISTRO_RETURN_IF_ERROR(CheckHashes(header, layout()));
  absl::MutexLock lock(&mu_);
  const absl::Duration now = clock_->MonotonicNow();
  DISTRO_RETURN_IF_ERROR(membership_.CheckSession(header.worker(), now));
  DISTRO_RETURN_IF_ERROR(CheckEpochSeen(header.epoch()));
  if (header.epoch() != epoch_.value()) {
    return ErrorWithReason(
        absl::StatusCode::kFailedPrecondition, "wrong_epoch",
        absl::StrCat("epoch ", header.epoch(), ": the aggregator's is ", epoch_.value()));
  }
  const std::string& name = header.worker().name();
  DISTRO_RETURN_IF_ERROR(CheckRound(RoundId(header.round()), name, now));
  DISTRO_RETURN_IF_ERROR(round_->BeginUpload(header, membership_.Find(name)->probation_left > 0));
  references_.AddTensors(head_, header.state_hash(), header.tensor_hashes());
  if (header.abstain()) Poke();
  return UploadTicket{header.worker(), head_, round_->Held(name)};
}

PayloadExpectation RoundManager::Expectation(RoundId round, SegmentId segment) const {
  return ExpectPayload(layout(), round, segment, static_cast<int>(run_->config.kept_per_block()));
}

absl::StatusOr<Taken> RoundManager::AddPayload(const UploadTicket& ticket, SegmentId segment,
                                               SharedBytes payload) {
  absl::MutexLock lock(&mu_);
  const absl::Duration now = clock_->MonotonicNow();
  DISTRO_RETURN_IF_ERROR(membership_.CheckSession(ticket.worker, now));
  const std::string& name = ticket.worker.name();
  DISTRO_RETURN_IF_ERROR(CheckRound(ticket.round, name, now));
  DISTRO_ASSIGN_OR_RETURN(const Taken taken,
                          round_->Put(ticket.worker, segment, std::move(payload), now));
  if (taken == Taken::kNew) {
    if (round_->Complete(name)) {
      membership_.Apply(name, MemberEvent::kInTime);
      observer_->OnUpdateReceived();
    }
    Poke();
  }
  if (round_->Finished(name)) TimeUpdate(ticket.round, name, now);
  return taken;
}

void RoundManager::CountInvalidUpload(const UploadTicket& ticket) {
  absl::MutexLock lock(&mu_);
  if (!membership_.CheckSession(ticket.worker, clock_->MonotonicNow()).ok()) return;
  membership_.Apply(ticket.worker.name(), MemberEvent::kInvalidUpdate,
                    absl::StrCat("the last in round ", ticket.round.value()), ticket.round);
}

}  // namespace distro::server
