#include "tools/archiver/round_feed.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/client/status_action.h"
#include "common/rpc/status.h"

namespace distro::tools {

RoundFeed::RoundFeed(Start start, Parts parts)
    : start_(std::move(start)),
      parts_(parts),
      reasons_("subscription broken", parts.log, parts.clock),
      log_hash_(start_.log_hash),
      next_round_(start_.next_round),
      epoch_(start_.epoch),
      last_frame_(parts.clock->MonotonicNow()),
      thread_([this] { Run(); }) {}

RoundFeed::~RoundFeed() {
  Close(absl::CancelledError("stopped"));
  thread_.join();
}

absl::StatusOr<CommittedRound> RoundFeed::Next() {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &RoundFeed::HasNext));
  if (rounds_.empty()) return end_;
  CommittedRound round = std::move(rounds_.front());
  rounds_.pop_front();
  return round;
}

EpochId RoundFeed::epoch() const {
  absl::MutexLock lock(&mu_);
  return epoch_;
}

void RoundFeed::ObserveEpoch(EpochId epoch) {
  absl::MutexLock lock(&mu_);
  epoch_ = std::max(epoch_, epoch);
}

uint64_t RoundFeed::reconnects() const {
  absl::MutexLock lock(&mu_);
  return reconnects_;
}

void RoundFeed::ReopenIfSilent(RoundId head, absl::Duration patience) {
  absl::MutexLock lock(&mu_);
  const bool waits_for_us = rounds_.size() >= kAhead;
  const absl::Duration silence = parts_.clock->MonotonicNow() - last_frame_;
  if (call_ == nullptr || waits_for_us || head <= next_round_ || silence < patience) return;
  parts_.log->Warning("subscription given up", {{"round", next_round_.value()},
                                                {"head", head.value()},
                                                {"silence", absl::FormatDuration(silence)}});
  call_->TryCancel();
  last_frame_ = parts_.clock->MonotonicNow();
}

void RoundFeed::Close(absl::Status status) {
  absl::MutexLock lock(&mu_);
  if (!closed_) end_ = std::move(status);
  closed_ = true;
  if (call_ != nullptr) call_->TryCancel();
}

bool RoundFeed::Ended() const {
  absl::MutexLock lock(&mu_);
  return closed_ || parts_.stopper->stopped();
}

void RoundFeed::Run() {
  Backoff backoff(parts_.client->backoff(), RandomSeed());
  while (!Ended()) {
    progressed_ = false;
    const absl::Status status = Stream();
    if (Ended()) break;
    if (status.ok() || ActionFor(status) != StatusAction::kRetry) {
      return Close(status.ok() ? absl::OutOfRangeError("all rounds of the run are there") : status);
    }
    reasons_.Failed(status.ToString());
    if (progressed_) backoff.Reset();
    parts_.stopper->Sleep(
        std::max(backoff.Next(), RetryAfterOf(status).value_or(absl::ZeroDuration())));
    absl::MutexLock lock(&mu_);
    ++reconnects_;
  }
  Close(absl::CancelledError("stopped"));
}

// One subscription. OK: the run's last round is there.
absl::Status RoundFeed::Stream() {
  StoppableCall call(parts_.stopper);
  v1::SubscribeRoundsRequest request;
  request.set_run_id(start_.run_id);
  RoundId next;
  {
    absl::MutexLock lock(&mu_);
    next = next_round_;
    if (next >= start_.rounds) return absl::OkStatus();
    if (closed_) return absl::CancelledError("stopped");
    request.set_epoch(epoch_.value());
    last_frame_ = parts_.clock->MonotonicNow();
    call_ = call.context();
  }
  request.set_from_round(next.value());
  if (next > RoundId(0)) request.set_last_hash(log_hash_);
  const std::shared_ptr<Connection::Stub> stub = parts_.client->rounds()->stub();
  const auto stream = stub->SubscribeRounds(call.context(), request);
  RoundAssembler assembler(parts_.layout, next);
  absl::Status taken;
  v1::SubscribeRoundsResponse frame;
  while (taken.ok() && assembler.next_round() < start_.rounds && stream->Read(&frame)) {
    taken = Take(&assembler, std::move(frame));
  }
  const bool done = assembler.next_round() >= start_.rounds;
  if (!taken.ok() || done) call.context()->TryCancel();
  while (stream->Read(&frame)) {  // Finish() waits for ever while messages are unread
  }
  const absl::Status finished = FromGrpcStatus(stream->Finish());
  parts_.client->rounds()->Heed(finished);
  {
    absl::MutexLock lock(&mu_);
    call_ = nullptr;
  }
  if (!taken.ok() || done) return taken;
  if (finished.ok()) return absl::UnavailableError("the aggregator closed the stream");
  return finished;
}

absl::Status RoundFeed::Take(RoundAssembler* assembler, v1::SubscribeRoundsResponse frame) {
  const EpochId epoch(frame.epoch());
  {
    absl::MutexLock lock(&mu_);
    last_frame_ = parts_.clock->MonotonicNow();
    if (epoch < epoch_) {
      return absl::UnavailableError(absl::StrCat("a frame of epoch ", epoch.value(), ", epoch ",
                                                 epoch_.value(), " was seen already"));
    }
    epoch_ = epoch;
  }
  absl::StatusOr<RoundEvent> event = assembler->Add(std::move(frame));
  if (!event.ok()) {
    return absl::UnavailableError(absl::StrCat("bad frame: ", event.status().message()));
  }
  // Parts of a result are no progress: a stream that ends before its commit each time is to come
  // back ever later.
  if (std::holds_alternative<std::monostate>(*event)) return absl::OkStatus();
  if (!progressed_) reasons_.Succeeded("subscription restored");
  progressed_ = true;
  auto* committed = std::get_if<CommittedRound>(&*event);
  if (committed == nullptr) return absl::OkStatus();
  log_hash_ = committed->hash;
  return Push(std::move(*committed)) ? absl::OkStatus() : absl::CancelledError("stopped");
}

bool RoundFeed::Push(CommittedRound round) {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &RoundFeed::HasRoom));
  if (closed_) return false;
  next_round_ = round.round().Next();
  rounds_.push_back(std::move(round));
  last_frame_ = parts_.clock->MonotonicNow();
  return true;
}

}  // namespace distro::tools
