// The rendezvous of the training thread of a session and the thread of the Python program. The
// training loop runs as it does in distro-worker; it asks here for the work that only the program
// can do, and waits. So the program's thread runs what it was asked for, and the two never touch
// the module at the same time.
//
//   training thread                              program's thread
//   loss = hand_over.Ask({kGradient, ...});       request = hand_over.Wait(timeout);
//                                                 ... forward, backward ...
//                                                 hand_over.Answer(loss);
//   hand_over.End(status);                        Wait gives kEnd from now on
//
// Thread-safe: one thread asks, one answers.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "distro/v1/run.pb.h"

namespace distro::worker {

struct Request {
  enum class Kind {
    kJoined,    // the module has the run's parameters: say when training begins
    kGradient,  // of the mean loss over `samples`, where the module is; answered with that loss
    kStep,      // a step of the inner optimizer at `rate`, along the gradient as it is
    kReset,     // the inner optimizer begins anew
    kSave,      // keep the inner optimizer's state, as after `local_steps`; answered with 0: it
                // could not be
    kEnd,       // nothing is asked any more
  };
  Kind kind = Kind::kEnd;
  v1::Slot samples = {};
  // kGradient, the first one of a round: samples that will be asked for soon, these first
  // (Objective::Expect).
  v1::Slot expected = {};
  bool begins_round = false;  // kGradient: the module was set to the run's parameters
  float rate = 0;
  uint64_t local_steps = 0;
};

class HandOver {
 public:
  // Blocks until it is answered. Cancelled: the program computes no more (Close), and this is not
  // kSave; or it is gone (Abandon).
  absl::StatusOr<double> Ask(Request request);
  // The training thread ends here. The first status stays.
  void End(absl::Status status);

  // What is asked, again until it is answered; nothing after `timeout`.
  std::optional<Request> Wait(absl::Duration timeout);
  // Of what was asked last. FailedPrecondition: nothing is asked.
  absl::Status Answer(double value);
  // The program computes no more; it still answers kSave.
  void Close();
  // Nobody will answer any more.
  void Abandon();
  // With which the training thread ended; requires that Wait gave kEnd.
  absl::Status end_status() const;

 private:
  bool IsWanted(Request::Kind kind) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  absl::CondVar changed_;
  std::optional<Request> asked_ ABSL_GUARDED_BY(mu_);
  std::optional<double> answer_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  bool abandoned_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status end_status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::worker
