// The rendezvous of a session's training thread and the Python program's thread. The training loop
// is that of distro-worker; it requests here the operations that only the program can do, and waits
// for the answer. So the two threads never use the module at the same time.
//
//   training thread                              program's thread
//   loss = hand_over.Ask({kGradient, ...});       request = hand_over.Wait(timeout);
//                                                 ... forward, backward ...
//                                                 hand_over.Answer(loss);
//   hand_over.End(status);                        Wait gives kEnd from now on
//
// Thread-safe: one thread asks, the other answers.
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
    kJoined,    // the module has the run's parameters: answer when training may begin
    kEvaluate,  // at the run's parameters, which the module has; answered with the held-out loss
    kGradient,  // of the mean loss over `samples`, at the module; answered with that loss
    kStep,      // a step of the inner optimizer at `rate`, with the current gradient
    kReset,     // reset the inner optimizer
    kSave,      // save the inner optimizer's state after `local_steps`; the answer 0: it failed
    kEnd,       // no further requests
  };
  Kind kind = Kind::kEnd;
  v1::Slot samples = {};
  // With the first kGradient of a round: the samples of the next requests, in order
  // (Objective::Expect).
  v1::Slot expected = {};
  bool begins_round = false;  // kGradient: the module was set to the run's parameters
  float rate = 0;
  uint64_t local_steps = 0;
};

class HandOver {
 public:
  // Blocks until the request is answered. Cancelled: after Close, unless it is kSave; or after
  // Abandon.
  absl::StatusOr<double> Ask(Request request);
  // Call when the training thread ends. The first status is kept.
  void End(absl::Status status);

  // Returns the current request, repeatedly until it is answered; nullopt after `timeout`.
  std::optional<Request> Wait(absl::Duration timeout);
  // Answers the current request. FailedPrecondition: there is none.
  absl::Status Answer(double value);
  // The program will only answer kSave from now on.
  void Close();
  // The program will answer nothing from now on.
  void Abandon();
  // The final status of the training thread. Requires that Wait has returned kEnd.
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
