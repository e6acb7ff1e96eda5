#include "common/client/follow/round_feed.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/epoch.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/client/backoff.h"
#include "common/net/rpc/status.h"
#include "common/net/wire/proto_time.h"

namespace distro {
namespace {

std::optional<absl::Duration> MadeAt(const v1::SubscribeRoundsResponse& frame) {
  if (!frame.has_made_at()) return std::nullopt;
  return FromProto(frame.made_at());
}

}  // namespace

RoundFeed::RoundFeed(const Follower& follower, Connection* connection, const Layout* layout,
                     Start start, EventQueue* queue)
    : follower_(follower),
      connection_(connection),
      layout_(layout),
      start_(std::move(start)),
      queue_(queue),
      next_round_(start_.next_round),
      log_hash_(start_.log_hash),
      rounds_(start_.rounds),
      mirrors_(follower_, {.run_id = start_.run_id, .urls = start_.mirrors},
               [this] { return closing_ || follower_.state->view().reopens != reopens_; }),
      reasons_("subscription interrupted", follower.log, follower.clock) {
  follower_.state->Update([this](ClientView& view) {
    view.next_round = start_.next_round;
    view.following = true;
  });
  thread_ = std::thread([this] { Run(); });
}

RoundFeed::~RoundFeed() {
  closing_ = true;
  queue_->Close(absl::CancelledError("the feed was closed"), /*drop=*/true);
  follower_.state->Update([](ClientView& view) { ++view.reopens; });
  thread_.join();
}

void RoundFeed::Run() {
  ClientState* const state = follower_.state;
  Backoff backoff(follower_.backoff, follower_.seed);
  absl::Status refused;
  while (refused.ok()) {
    const ClientView start = state->view();  // read first: closing changes it afterwards
    if (done() || closing_ || state->ended()) break;
    progressed_ = false;
    const absl::Status status = Stream(start);
    state->Update([](ClientView& view) { view.subscribed = false; });
    if (done() || closing_ || state->ended()) break;
    if (Asks() != objects_) continue;  // with the stream's bytes, or without them again
    connection_->Heed(status);
    follower_.meter->AddReconnect();
    if (!MayPass(follower_, status)) {
      refused = status;
      break;
    }
    reasons_.Failed(status.ToString());
    if (progressed_) backoff.Reset();
    state->SleepUnlessNews(DelayAfter(status, &backoff), start);
  }
  if (done()) {
    refused = absl::OutOfRangeError(
        absl::StrCat("the run is done after ", next_round_.value(), " rounds"));
  } else if (follower_.member && !refused.ok()) {
    state->End(refused);
  }
  const bool ended = !done() && state->ended();
  queue_->Close(ended ? state->end_status() : refused, /*drop=*/false);
}

absl::Status RoundFeed::Stream(const ClientView& start) {
  ClientState* const state = follower_.state;
  ClientCall call(
      state, [reopens = start.reopens](const ClientView& view) { return view.reopens == reopens; });
  call.context()->set_wait_for_ready(true);
  v1::SubscribeRoundsRequest request;
  if (follower_.member) *request.mutable_worker() = start_.worker;
  request.set_run_id(start_.run_id);
  request.set_epoch(KeptEpoch(start.epoch, follower_.clock->WallNow()).value());
  request.set_from_round(next_round_.value());
  if (next_round_ > RoundId(0)) request.set_last_hash(log_hash_);
  began_at_ = next_round_;
  reopens_ = start.reopens;
  objects_ = Asks();
  request.set_objects(objects_);
  const auto stub = connection_->stub();
  const auto stream = stub->SubscribeRounds(call.context(), request);
  state->Update([&](ClientView& view) {
    view.subscribed = true;
    view.delivering = false;
    view.subscription_epoch = start.epoch;
    view.last_frame = follower_.clock->MonotonicNow();
  });
  flight_ = FlightTime();
  RoundAssembler assembler(layout_, next_round_, objects_ ? &mirrors_ : nullptr);
  absl::Status taken;
  v1::SubscribeRoundsResponse frame;
  while (taken.ok() && !done() && !Switches() && stream->Read(&frame))
    taken = Take(&assembler, std::move(frame));
  if (!taken.ok() || done() || Switches()) call.context()->TryCancel();
  while (stream->Read(&frame)) {  // Finish() does not return while messages are unread
  }
  const absl::Status finished = FromGrpcStatus(stream->Finish());
  if (!taken.ok()) return taken;
  if (finished.ok()) return absl::UnavailableError("the aggregator closed the stream");
  return finished;
}

absl::Status RoundFeed::Take(RoundAssembler* assembler, v1::SubscribeRoundsResponse frame) {
  ClientState* const state = follower_.state;
  const EpochId epoch(frame.epoch());
  DISTRO_RETURN_IF_ERROR(CheckEpoch(epoch, state->view().epoch, follower_.clock->WallNow()));
  Measure(frame);
  absl::StatusOr<RoundEvent> event = assembler->Add(std::move(frame));
  if (absl::IsUnavailable(event.status()) || absl::IsCancelled(event.status())) {
    failed_ = true;  // of a mirror: whatever others do, the round comes from the stream
    return event.status();
  }
  if (!event.ok())
    return absl::UnavailableError(absl::StrCat("invalid frame: ", event.status().message()));
  state->ObserveFrame(epoch, follower_.clock->MonotonicNow());
  // Parts of a result are not progress: if a stream always ends before its commit, the backoff must
  // keep growing.
  if (std::holds_alternative<std::monostate>(*event)) return absl::OkStatus();
  if (!progressed_) reasons_.Succeeded("subscription restored");
  progressed_ = true;
  if (auto* committed = std::get_if<CommittedRound>(&*event)) return Commit(std::move(*committed));
  if (auto* opened = std::get_if<OpenedRound>(&*event)) {
    opened->arrived = follower_.clock->MonotonicNow();
    state->Update([](ClientView& view) { ++view.opens; });
    if (follower_.member) Deliver(*std::move(event));
  }
  return absl::OkStatus();
}

absl::Status RoundFeed::Commit(CommittedRound round) {
  const uint64_t predecessor = round.header->predecessor_hash();
  const bool unknown = next_round_ == RoundId(0) && log_hash_ == 0;
  if (!unknown && predecessor != log_hash_) {
    return ErrorWithReason(
        absl::StatusCode::kFailedPrecondition, "diverged",
        absl::StrCat("round ", next_round_.value(), " continues a log with hash ",
                     ToHex(predecessor), ", this replica's log has hash ", ToHex(log_hash_)));
  }
  next_round_ = next_round_.Next();
  log_hash_ = round.hash;
  rounds_ = std::max(rounds_, RoundId(round.header->extension().rounds()));
  follower_.state->Update([&](ClientView& view) { view.next_round = next_round_; });
  if (objects_) mirrors_.RoundOver();
  failed_ = false;
  follower_.meter->EndResult();
  Deliver(std::move(round));
  return absl::OkStatus();
}

void RoundFeed::Deliver(RoundEvent event) {
  if (!queue_->Full(event)) {
    queue_->Push(std::move(event));
    return;
  }
  ClientState* const state = follower_.state;
  state->Update([](ClientView& view) { view.delivering = true; });
  queue_->Push(std::move(event));
  state->Update([&](ClientView& view) {
    view.delivering = false;
    view.last_frame = follower_.clock->MonotonicNow();
  });
  last_segment_frame_.reset();
  flight_.Pause(follower_.clock->MonotonicNow());
}

void RoundFeed::Measure(const v1::SubscribeRoundsResponse& frame) {
  const absl::Duration now = follower_.clock->MonotonicNow();
  const absl::Duration since = flight_.Since(MadeAt(frame), now);
  if (!frame.has_segment()) {
    follower_.meter->AddControl(0, frame.ByteSizeLong());
    last_segment_frame_.reset();
    return;
  }
  const uint64_t bytes = frame.segment().data().size();
  follower_.meter->AddReceived(bytes, since, now);
  // Past rounds arrive as fast as the link allows; the current one waits for other workers.
  const bool past = RoundId(frame.round()).Next() < follower_.state->view().head;
  if (past && last_segment_frame_.has_value() &&
      now - *last_segment_frame_ < TransferMeter::kLongestGap)
    follower_.meter->AddBulk(bytes, now - *last_segment_frame_);
  last_segment_frame_ = now;
}

void ReopenIfSilent(const Follower& follower, absl::Duration patience) {
  const std::string reason =
      follower.state->ReopenIfSilent(follower.clock->MonotonicNow(), patience);
  if (reason.empty()) return;
  follower.log->Warning("subscription is silent, opening it again", {{"reason", reason}});
}

}  // namespace distro
