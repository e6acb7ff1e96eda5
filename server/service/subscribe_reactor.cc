#include "server/service/subscribe_reactor.h"

#include <string>
#include <utility>
#include <vector>

#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "grpcpp/support/slice.h"
#include "server/service/disk_error.h"
#include "server/service/shared_slice.h"

namespace distro::server {
namespace {

absl::StatusOr<v1::SubscribeRoundsRequest> Parse(const grpc::ByteBuffer& message) {
  grpc::Slice bytes;
  v1::SubscribeRoundsRequest request;
  if (!message.DumpToSingleSlice(&bytes).ok() ||
      !request.ParseFromArray(bytes.begin(), static_cast<int>(bytes.size()))) {
    return ErrorWithReason(absl::StatusCode::kInvalidArgument, "malformed",
                           "the message is not a SubscribeRoundsRequest");
  }
  return request;
}

}  // namespace

SubscribeReactor* SubscribeReactor::Start(const Caller& caller, RoundManager* manager,
                                          StreamGate* gate, TransferObserver* observer, Log* log,
                                          const grpc::ByteBuffer& request) {
  std::shared_ptr<SubscribeReactor> reactor(new SubscribeReactor(observer, log));
  reactor->self_ = reactor;
  if (absl::Status status = reactor->Subscribe(caller, manager, gate, request); !status.ok()) {
    absl::MutexLock lock(&reactor->mu_);
    reactor->finished_ = true;
    reactor->Finish(ToGrpcStatus(status));
    return reactor.get();
  }
  reactor->subscription_->Listen(reactor);
  reactor->Pump();
  return reactor.get();
}

absl::Status SubscribeReactor::Subscribe(const Caller& caller, RoundManager* manager,
                                         StreamGate* gate, const grpc::ByteBuffer& request) {
  if (manager == nullptr) return absl::UnavailableError("there is no run yet: it must be created");
  DISTRO_ASSIGN_OR_RETURN(stream_, gate->Open(StreamKind::kSubscription, nullptr));
  DISTRO_ASSIGN_OR_RETURN(const v1::SubscribeRoundsRequest parsed, Parse(request));
  DISTRO_RETURN_IF_ERROR(caller.MayActAs(parsed.worker().name()));
  DISTRO_ASSIGN_OR_RETURN(subscription_, manager->Subscribe(parsed));
  return absl::OkStatus();
}

// What the stream ends with: OK where there is no further round, its reason where it has one; anything else is the disk's.
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
  if (!next.ok()) {
    finished_ = true;
    pumping_ = false;
    Finish(ToGrpcStatus(EndOf(next.status())));
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
