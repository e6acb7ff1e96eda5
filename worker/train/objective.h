// Computes losses and gradients of samples for the training loop. Leaves the gradient where the
// loop's Learner reads it (worker/node/learner.h). Two implementations: a node's micro-batches
// (node_objective.h), and the loop of a Python program (worker/python/module_objective.h).
//
// Not thread-safe: the training thread owns it.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"
#include "worker/plan/node_options.h"

namespace distro::worker {

// The numbers of a gradient that is not uploaded yet; the learner has the gradient itself.
struct Gradient {
  double loss = 0;  // mean over the samples, nats a token
  double norm = 0;  // before clipping
  bool finite = true;
  int local_steps = 0;    // started, with their samples read
  int skipped_steps = 0;  // of these, not finite
};

// The source of held-out samples: the text that the worker trains on, or, with local data, the
// public text.
enum class HeldOutText { kOwn, kPublic };

class Objective {
 public:
  virtual ~Objective() = default;

  // Called before every part of the work; an error cancels the work and is returned.
  using GoesOn = absl::FunctionRef<absl::Status()>;

  // Announces the samples of the next gradients, in order, as far as known: those of the current
  // round and of the next one. For reading ahead; the next call replaces them, and a request for
  // another slot is still possible.
  virtual void Expect(v1::Slot /*samples*/) {}
  // The mean gradient over the samples, at the parameters or at their copy.
  virtual absl::StatusOr<Gradient> GradientOf(const v1::Slot& samples, GradientAt at,
                                              GoesOn goes_on) = 0;
  // Whether it takes local steps by itself, instead of their gradients.
  virtual bool takes_local_steps() const { return false; }
  // GradientStep::TakeLocalSteps, on the copy. Requires takes_local_steps().
  virtual absl::StatusOr<Gradient> TakeLocalSteps(const v1::Slot& /*samples*/,
                                                  const v1::StepParameters& /*step*/,
                                                  absl::Duration /*window_ends*/,
                                                  GoesOn /*goes_on*/) {
    return absl::UnimplementedError("an objective that only computes gradients");
  }
  // Whether HeldOutLoss may be called.
  virtual bool evaluates() const = 0;
  // Mean loss in nats per token, at the parameters, of the run's number of held-out samples.
  // InvalidArgument: there are none.
  virtual absl::StatusOr<double> HeldOutLoss(HeldOutText which, GoesOn goes_on) = 0;
};

}  // namespace distro::worker
