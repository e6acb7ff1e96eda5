#include "common/client/member/uploader.h"

#include <utility>

#include "common/base/reason.h"
#include "common/client/backoff.h"
#include "common/client/member/offer_update.h"
#include "common/client/status_action.h"

namespace distro {
namespace {

// How often an update is offered whose bytes are refused. The aggregator quarantines a worker after
// three refusals in a row.
constexpr int kMaxMalformed = 2;

// Whether the refusal concerns only this update, not this worker.
bool RefusesTheUpdateOnly(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnauthenticated:
      return false;
    default:
      return true;
  }
}

}  // namespace

Uploader::Uploader(const SessionContext& context, Connection* connection)
    : context_(context),
      connection_(connection),
      backoff_(context.options->backoff, context.state->worker().incarnation() + 1),
      reasons_("upload interrupted", context.log, context.clock) {}

void Uploader::Add(RoundUpdate update) {
  {
    absl::MutexLock lock(&mu_);
    const RoundId round = update.round;
    pending_[round] = Pending{.update = std::move(update), .accepted = EpochId()};
  }
  context_.state->Update([](ClientView&) {});
}

void Uploader::Run() {
  MemberState* const state = context_.state;
  while (!state->ended()) {
    const ClientView view = state->view();
    const std::optional<RoundUpdate> update = NextOffer(view);
    if (!update.has_value()) {
      state->AwaitChange(view.version, absl::InfiniteDuration());
      continue;
    }
    const absl::Status status = OfferUpdate(context_, connection_, *update, view.epoch);
    if (state->ended()) return;
    Handle(*update, view, status);
  }
}

std::optional<RoundUpdate> Uploader::NextOffer(const ClientView& view) {
  absl::MutexLock lock(&mu_);
  for (auto it = pending_.begin(); it != pending_.end();) {
    auto& [round, pending] = *it;
    const bool over = round < view.next_round || (pending.refused && round < view.head);
    if (!over && pending.accepted != view.epoch) {
      pending.offered = true;
      return pending.update;
    }
    const bool late = pending.refused || !pending.offered;
    if (over && late && pending.accepted == EpochId()) {
      context_.log->Info("update was late: what it held is sent with a later one",
                         {{"round", round.value()}});
    }
    it = over ? pending_.erase(it) : std::next(it);
  }
  return std::nullopt;
}

bool Uploader::MayBeDamaged(RoundId round, const absl::Status& status) {
  if (ReasonOf(status) != "malformed") return false;
  absl::MutexLock lock(&mu_);
  const auto it = pending_.find(round);
  return it != pending_.end() && ++it->second.malformed < kMaxMalformed;
}

void Uploader::Handle(const RoundUpdate& update, const ClientView& start,
                      const absl::Status& status) {
  const EpochId epoch = start.epoch;
  if (status.ok()) {
    backoff_.Reset();
    reasons_.Succeeded("upload restored");
    absl::MutexLock lock(&mu_);
    if (auto it = pending_.find(update.round); it != pending_.end()) it->second.accepted = epoch;
    return;
  }
  if (MayBeDamaged(update.round, status)) {
    reasons_.Failed(status.ToString());
    context_.meter->AddRetry(RetriedRpc::kUpload, status.code());
    return Await(update.round, start, /*refused=*/false, DelayAfter(status, &backoff_));
  }
  const StatusAction action = ActionFor(status);
  if (action == StatusAction::kEnd || action == StatusAction::kResync) {
    context_.log->Error("update rejected", {{"round", update.round.value()}, {"status", status}});
    if (action == StatusAction::kResync || !RefusesTheUpdateOnly(status))
      context_.state->End(status);
    Forget(update);
    return;
  }
  const bool refused = action == StatusAction::kRejoin;
  if (refused) {
    absl::MutexLock lock(&mu_);
    if (auto it = pending_.find(update.round); it != pending_.end()) it->second.refused = true;
  }
  const ClientView view = context_.state->view();
  if (view.next_round > update.round || view.epoch != epoch) return;  // cancelled because of that
  if (refused) context_.state->WantHead();
  if (!refused) reasons_.Failed(status.ToString());
  context_.meter->AddRetry(RetriedRpc::kUpload, status.code());
  Await(update.round, start, refused, DelayAfter(status, &backoff_));
}

void Uploader::Await(RoundId round, const ClientView& start, bool refused, absl::Duration delay) {
  context_.state->Await(delay, [&](const ClientView& view) {
    const bool over = view.next_round > round || (refused && view.head > round);
    return over || view.epoch != start.epoch || view.returns != start.returns ||
           view.opens != start.opens;
  });
}

void Uploader::Forget(const RoundUpdate& update) {
  absl::MutexLock lock(&mu_);
  const auto it = pending_.find(update.round);
  if (it != pending_.end() && it->second.update.first_sample == update.first_sample)
    pending_.erase(it);
}

}  // namespace distro
