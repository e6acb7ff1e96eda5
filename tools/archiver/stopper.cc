#include "tools/archiver/stopper.h"

namespace distro::tools {

void Stopper::Stop() {
  absl::MutexLock lock(&mu_);
  stopped_ = true;
  for (grpc::ClientContext* call : calls_) call->TryCancel();
}

bool Stopper::stopped() const {
  absl::MutexLock lock(&mu_);
  return stopped_;
}

bool Stopper::Sleep(absl::Duration duration) const {
  absl::MutexLock lock(&mu_);
  return !mu_.AwaitWithTimeout(absl::Condition(&stopped_), duration);
}

StoppableCall::StoppableCall(Stopper* stopper) : stopper_(stopper) {
  absl::MutexLock lock(&stopper_->mu_);
  stopper_->calls_.insert(&context_);
  if (stopper_->stopped_) context_.TryCancel();
}

StoppableCall::~StoppableCall() {
  absl::MutexLock lock(&stopper_->mu_);
  stopper_->calls_.erase(&context_);
}

}  // namespace distro::tools
