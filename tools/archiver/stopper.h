// The end of a process, known to all its threads at once: they sleep on it, and calls that are in flight are cancelled by
// it. Thread-safe.
#pragma once

#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"

namespace distro::tools {

class Stopper {
 public:
  // From now on nothing waits: sleepers wake, calls end as cancelled, also those that begin later. Once is enough.
  void Stop();
  bool stopped() const;
  // False: stopped, perhaps before the time was over.
  bool Sleep(absl::Duration duration) const;

 private:
  friend class StoppableCall;

  mutable absl::Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mu_);
};

// The context of one call. `stopper` is borrowed.
class StoppableCall {
 public:
  explicit StoppableCall(Stopper* stopper);
  ~StoppableCall();
  StoppableCall(const StoppableCall&) = delete;
  StoppableCall& operator=(const StoppableCall&) = delete;

  grpc::ClientContext* context() { return &context_; }

 private:
  Stopper* const stopper_;
  grpc::ClientContext context_;
};

}  // namespace distro::tools
