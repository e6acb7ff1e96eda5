#include "server/service/subscribe_reactor.h"

#include <string>
#include <utility>

#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/net/rpc/status.h"
#include "server/service/call_checks.h"
#include "server/service/raw_message.h"

namespace distro::server {
namespace {

// The name that the stream's place is charged to: the credential's, or with --insecure the worker's
// in the request; may be empty.
std::string OwnerOf(const Caller& caller, const v1::SubscribeRoundsRequest& request) {
  return caller.name().empty() ? request.worker().name() : caller.name();
}

}  // namespace

SubscribeReactor* SubscribeReactor::Start(grpc::CallbackServerContext* context,
                                          const Caller& caller, RoundManager* manager,
                                          StreamLimiter* limiter, TransferObserver* observer,
                                          Log* log, const grpc::ByteBuffer& request) {
  std::shared_ptr<SubscribeReactor> reactor(new SubscribeReactor(context, observer, log));
  reactor->self_ = reactor;
  if (absl::Status status = reactor->Subscribe(caller, manager, limiter, request); !status.ok()) {
    absl::MutexLock lock(&reactor->mu_);
    if (!reactor->finished_) reactor->FinishLocked(status);
    return reactor.get();
  }
  reactor->subscription_->Listen(reactor);
  reactor->Pump();
  return reactor.get();
}

absl::Status SubscribeReactor::Subscribe(const Caller& caller, RoundManager* manager,
                                         StreamLimiter* limiter, const grpc::ByteBuffer& request) {
  if (manager == nullptr) return NoRun();
  DISTRO_ASSIGN_OR_RETURN(stream_, limiter->Open(StreamKind::kSubscription,
                                                 [this](const absl::Status& why) { Stop(why); }));
  v1::SubscribeRoundsRequest parsed;
  DISTRO_RETURN_IF_ERROR(ParseMessage(request, &parsed));
  DISTRO_RETURN_IF_ERROR(caller.MayActAs(parsed.worker().name()));
  DISTRO_ASSIGN_OR_RETURN(subscription_, manager->Subscribe(parsed));
  if (const std::string owner = OwnerOf(caller, parsed); !owner.empty())
    stream_->Identify(owner, 0);
  return absl::OkStatus();
}

void SubscribeReactor::Stop(const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  if (finished_) return;
  stopped_ = status;
  if (writing_) return context_->TryCancel();
  if (!pumping_) FinishLocked(status);
}

void SubscribeReactor::FinishLocked(const absl::Status& status) {
  finished_ = true;
  Finish(ToGrpcStatus(status));
}

// The stream's final status: OK if there is no further round, `status` itself if it has a reason;
// anything else is a failure of the disk.
absl::Status SubscribeReactor::EndOf(const absl::Status& status) const {
  if (absl::IsOutOfRange(status) && ReasonOf(status).empty()) return absl::OkStatus();
  const std::string reason = ReasonOf(status);
  const bool of_the_round = absl::IsUnavailable(status) || absl::IsCancelled(status);
  if (reason != "disk" && (!reason.empty() || of_the_round)) return status;
  return WithoutPath(status, "read its log", log_);
}

void SubscribeReactor::OnWriteDone(bool ok) {
  {
    absl::MutexLock lock(&mu_);
    writing_ = false;
    if (!ok) cancelled_ = true;
  }
  Pump();
}

void SubscribeReactor::OnCancel() {
  {
    absl::MutexLock lock(&mu_);
    cancelled_ = true;
  }
  Pump();
}

void SubscribeReactor::Pump() {
  if (!EnterPump()) return;
  while (LeavePump(subscription_->Next())) {
  }
}

bool SubscribeReactor::EnterPump() {
  absl::MutexLock lock(&mu_);
  if (finished_ || writing_) return false;
  if (pumping_) {
    again_ = true;
    return false;
  }
  pumping_ = true;
  again_ = false;
  return true;
}

bool SubscribeReactor::LeavePump(absl::StatusOr<SharedBytes> next) {
  absl::MutexLock lock(&mu_);
  if (cancelled_) next = absl::CancelledError("the subscriber is gone");
  if (!stopped_.ok()) next = stopped_;
  if (!next.ok()) {
    pumping_ = false;
    FinishLocked(EndOf(next.status()));
    return false;
  }
  if (*next == nullptr) {
    if (std::exchange(again_, false)) return true;
    pumping_ = false;
    return false;
  }
  observer_->OnSent(TransferKind::kResult, (*next)->size());
  message_ = ShareBytes(*next);
  pumping_ = false;
  writing_ = true;
  StartWrite(&message_);
  return false;
}

}  // namespace distro::server
