// The rendezvous of a session's training thread and the Python program's thread. The training loop
// is that of distro-worker; it requests here the operations that only the program can do, and waits
// for the answer. So the two threads never use the module at the same time.
//
//   training thread                              program's thread
//   answer = hand_over.Ask({kRound, ...});        request = hand_over.Wait(timeout);
//                                                 ... forward, backward, step; H times ...
//                                                 hand_over.Reply({loss, norm, H});
//   hand_over.End(status);                        Wait gives kEnd from now on
//
// Thread-safe: one thread asks, the other answers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/steady_cond_var.h"
#include "distro/v1/run.pb.h"

namespace distro::worker {

struct Request {
  enum class Kind {
    kJoined,    // the module has the run's parameters: answer when training may begin
    kEvaluate,  // at the run's parameters, which the module has; answered with the held-out loss
    kRound,     // the local steps of a round, or with signs one gradient, over `samples`
    kReset,     // reset the inner optimizer
    kSave,      // save the inner optimizer's state after `local_steps`; the answer 0: it failed
    kEnd,       // no further requests
  };
  Kind kind = Kind::kEnd;
  // kRound: the module has the run's parameters, or their lookahead. Each step is over an equal
  // part of the samples, in order. The first step is always taken, a further one as long as it is
  // expected to end before the window does (GradientStep::TakeLocalSteps).
  v1::Slot samples = {};
  v1::Slot expected = {};         // the next samples, these included, in order (Objective::Expect)
  std::vector<float> rates = {};  // of the inner optimizer, one a step; with signs one, unused
  float clip_norm = 0;            // the largest norm of a step's gradient
  absl::Duration window_ends = absl::InfiniteDuration();  // monotonic, of Clock::Real()
  uint64_t local_steps = 0;                               // kSave
};

struct Answer {
  double value = 0;  // of kRound: the mean loss of the finite steps, or of the last one if none was
  // Of kRound with local steps: the norm of the last finite step's gradient, or as above; the
  // number of steps, and of those that were skipped because loss or norm was not finite.
  double norm = 0;
  int steps = 0;
  int skipped = 0;
};

class HandOver {
 public:
  // Blocks until the request is answered. Cancelled: after Close, unless it is kSave; or after
  // Abandon.
  absl::StatusOr<Answer> Ask(Request request);
  // Call when the training thread ends. The first status is kept.
  void End(absl::Status status);

  // Returns the current request, repeatedly until it is answered; nullopt after `timeout`.
  std::optional<Request> Wait(absl::Duration timeout);
  // Answers the current request. FailedPrecondition: there is none.
  absl::Status Reply(const Answer& answer);
  // The program will only answer kSave from now on. If the current request is kRound, and a step of
  // it was finite, `so_far` is its answer.
  void Close(const Answer& so_far);
  // The program will answer nothing from now on.
  void Abandon();
  // The final status of the training thread. Requires that Wait has returned kEnd.
  absl::Status end_status() const;

 private:
  bool IsWanted(Request::Kind kind) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  SteadyCondVar changed_;
  std::optional<Request> asked_ ABSL_GUARDED_BY(mu_);
  std::optional<Answer> answer_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  bool abandoned_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status end_status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::worker
