#include "worker/exchange/uploader.h"

#include <utility>

#include "worker/exchange/retry.h"
#include "worker/exchange/upload_stream.h"

namespace distro::worker {

Uploader::Uploader(const Background& background, v1::AggregatorService::StubInterface* stub)
    : background_(background),
      stub_(stub),
      backoff_(background.options->backoff, background.session->worker().incarnation() + 1),
      reasons_("upload interrupted", background.log, background.clock) {}

void Uploader::Add(RoundUpdate update) {
  {
    absl::MutexLock lock(&mu_);
    const RoundId round = update.round;
    pending_[round] = Pending{.update = std::move(update), .accepted = EpochId()};
  }
  background_.session->Update([](SessionView&) {});
}

void Uploader::Run() {
  Session* const session = background_.session;
  while (!session->ended()) {
    const SessionView view = session->view();
    const std::optional<RoundUpdate> update = NextOffer(view);
    if (!update.has_value()) {
      session->AwaitChange(view.version, absl::InfiniteDuration());
      continue;
    }
    const absl::Status status = OfferUpdate(background_, stub_, *update, view.epoch);
    if (session->ended()) return;
    Handle(*update, view.epoch, status);
  }
}

std::optional<RoundUpdate> Uploader::NextOffer(const SessionView& view) {
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
      background_.log->Info("update was late, it stays in the momentum",
                            {{"round", round.value()}});
    }
    it = over ? pending_.erase(it) : std::next(it);
  }
  return std::nullopt;
}

void Uploader::Handle(const RoundUpdate& update, EpochId epoch, const absl::Status& status) {
  if (status.ok()) {
    backoff_.Reset();
    reasons_.Succeeded("upload restored");
    absl::MutexLock lock(&mu_);
    if (auto it = pending_.find(update.round); it != pending_.end()) it->second.accepted = epoch;
    return;
  }
  const bool refused = status.code() == absl::StatusCode::kFailedPrecondition;
  if (!refused && !IsTransient(status)) {
    background_.log->Error("update rejected",
                           {{"round", update.round.value()}, {"status", status}});
    if (status.code() == absl::StatusCode::kAborted) background_.session->End(status);
    Forget(update.round);
    return;
  }
  if (refused) {
    absl::MutexLock lock(&mu_);
    if (auto it = pending_.find(update.round); it != pending_.end()) it->second.refused = true;
  }
  const SessionView view = background_.session->view();
  if (view.next_round > update.round || view.epoch != epoch) return;  // it was cancelled for that
  if (refused) background_.session->WantHeartbeat();
  if (!refused) reasons_.Failed(status.ToString());
  background_.meter->AddRetry();
  Await(update.round, epoch, refused, backoff_.Next());
}

void Uploader::Await(RoundId round, EpochId epoch, bool refused, absl::Duration delay) {
  const absl::Time due = absl::Now() + delay;
  while (true) {
    const SessionView view = background_.session->view();
    const absl::Duration left = due - absl::Now();
    const bool over = view.next_round > round || (refused && view.head > round);
    if (over || view.epoch != epoch || left <= absl::ZeroDuration()) return;
    if (!background_.session->AwaitChange(view.version, left)) return;
  }
}

void Uploader::Forget(RoundId round) {
  absl::MutexLock lock(&mu_);
  pending_.erase(round);
}

}  // namespace distro::worker
