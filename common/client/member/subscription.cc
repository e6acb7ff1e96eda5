#include "common/client/member/subscription.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/client/backoff.h"
#include "common/client/status_action.h"
#include "common/rpc/proto_time.h"
#include "common/rpc/status.h"

namespace distro {
namespace {

std::optional<absl::Duration> MadeAt(const v1::SubscribeRoundsResponse& frame) {
  if (!frame.has_made_at()) return std::nullopt;
  return FromProto(frame.made_at());
}

}  // namespace

Subscription::Subscription(const Background& background, Connection* connection, EventQueue* queue,
                           const Layout* layout, RoundId next_round, uint64_t log_hash)
    : background_(background),
      connection_(connection),
      queue_(queue),
      layout_(layout),
      next_round_(next_round),
      log_hash_(log_hash),
      reasons_("subscription broken", background.log, background.clock) {}

void Subscription::Run() {
  Session* const session = background_.session;
  Backoff backoff(background_.options->backoff, session->worker().incarnation());
  while (!done() && !session->ended()) {
    progressed_ = false;
    const SessionView start = session->view();
    const absl::Status status = Stream();
    session->Update([](SessionView& view) { view.subscribed = false; });
    if (done() || session->ended()) break;
    connection_->Heed(status);
    Judge(status);
    background_.meter->AddReconnect();
    if (progressed_) backoff.Reset();
    if (session->view().reopens == start.reopens) {
      session->SleepUnlessBack(DelayAfter(status, &backoff), start.returns);
    }
  }
  if (done()) {
    queue_->Close(absl::OutOfRangeError(
                      absl::StrCat("the run is done after ", next_round_.value(), " rounds")),
                  /*drop=*/false);
  } else {
    queue_->Close(session->end_status(), /*drop=*/false);
  }
}

absl::Status Subscription::Stream() {
  Session* const session = background_.session;
  const SessionView start = session->view();
  SessionCall call(session, [reopens = start.reopens](const SessionView& view) {
    return view.reopens == reopens;
  });
  call.context()->set_wait_for_ready(true);
  v1::SubscribeRoundsRequest request;
  *request.mutable_worker() = session->worker();
  request.set_run_id(session->run_id());
  request.set_epoch(start.epoch.value());
  request.set_from_round(next_round_.value());
  if (next_round_ > RoundId(0)) request.set_last_hash(log_hash_);
  const auto stub = connection_->stub();
  const auto stream = stub->SubscribeRounds(call.context(), request);
  session->Update([&](SessionView& view) {
    view.subscribed = true;
    view.delivering = false;
    view.subscription_epoch = start.epoch;
    view.last_frame = background_.clock->MonotonicNow();
  });
  flight_ = FlightTime();
  RoundAssembler assembler(layout_, next_round_);
  absl::Status taken;
  v1::SubscribeRoundsResponse frame;
  while (taken.ok() && !done() && stream->Read(&frame)) taken = Take(&assembler, std::move(frame));
  if (!taken.ok() || done()) call.context()->TryCancel();
  while (stream->Read(&frame)) {  // Finish() waits for ever while messages are unread
  }
  const absl::Status finished = FromGrpcStatus(stream->Finish());
  if (!taken.ok()) return taken;
  if (finished.ok()) return absl::UnavailableError("the aggregator closed the stream");
  return finished;
}

absl::Status Subscription::Take(RoundAssembler* assembler, v1::SubscribeRoundsResponse frame) {
  Session* const session = background_.session;
  const EpochId epoch(frame.epoch());
  if (const EpochId newest = session->view().epoch; epoch < newest)
    return FencedError(epoch, newest);
  Measure(frame);
  absl::StatusOr<RoundEvent> event = assembler->Add(std::move(frame));
  if (!event.ok())
    return absl::UnavailableError(absl::StrCat("bad frame: ", event.status().message()));
  session->ObserveFrame(epoch, background_.clock->MonotonicNow());
  // Parts of a result are no progress: a stream that ends before its commit each time is to come
  // back ever later.
  if (std::holds_alternative<std::monostate>(*event)) return absl::OkStatus();
  if (!progressed_) reasons_.Succeeded("subscription restored");
  progressed_ = true;
  if (auto* committed = std::get_if<CommittedRound>(&*event)) return Commit(std::move(*committed));
  if (std::holds_alternative<OpenedRound>(*event)) {
    session->Update([](SessionView& view) { ++view.opens; });
    Deliver(*std::move(event));
  }
  return absl::OkStatus();
}

absl::Status Subscription::Commit(CommittedRound round) {
  const uint64_t predecessor = round.header->predecessor_hash();
  const bool unknown = next_round_ == RoundId(0) && log_hash_ == 0;
  if (!unknown && predecessor != log_hash_) {
    return ErrorWithReason(
        absl::StatusCode::kFailedPrecondition, "diverged",
        absl::StrCat("round ", next_round_.value(), " follows record ", ToHex(predecessor),
                     ", this replica's is ", ToHex(log_hash_)));
  }
  next_round_ = next_round_.Next();
  log_hash_ = round.hash;
  background_.session->Update([&](SessionView& view) { view.next_round = next_round_; });
  background_.meter->EndResult();
  Deliver(std::move(round));
  return absl::OkStatus();
}

bool Subscription::Deliver(RoundEvent event) {
  if (!queue_->Full(event)) return queue_->Push(std::move(event));
  Session* const session = background_.session;
  session->Update([](SessionView& view) { view.delivering = true; });
  const bool delivered = queue_->Push(std::move(event));
  session->Update([&](SessionView& view) {
    view.delivering = false;
    view.last_frame = background_.clock->MonotonicNow();
  });
  last_segment_frame_.reset();
  flight_.Pause(background_.clock->MonotonicNow());
  return delivered;
}

void Subscription::Measure(const v1::SubscribeRoundsResponse& frame) {
  const absl::Duration now = background_.clock->MonotonicNow();
  const absl::Duration since = flight_.Since(MadeAt(frame), now);
  if (!frame.has_segment()) {
    background_.meter->AddControl(0, frame.ByteSizeLong());
    last_segment_frame_.reset();
    return;
  }
  const uint64_t bytes = frame.segment().data().size();
  background_.meter->AddReceived(bytes, since, now);
  // Rounds of the past come as fast as they can; those of the present wait for other workers.
  const bool past = RoundId(frame.round()).Next() < background_.session->view().head;
  if (past && last_segment_frame_.has_value())
    background_.meter->AddBulk(bytes, now - *last_segment_frame_);
  last_segment_frame_ = now;
}

void Subscription::Judge(const absl::Status& status) {
  Session* const session = background_.session;
  switch (ActionFor(status)) {
    case StatusAction::kRetry:
      break;
    case StatusAction::kRejoin:
      session->WantHeartbeat();  // it may not know this session any more
      break;
    case StatusAction::kResync:
    case StatusAction::kEnd:
      session->End(status);
      return;
  }
  reasons_.Failed(status.ToString());
}

}  // namespace distro
