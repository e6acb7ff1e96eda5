// Computes losses and gradients of samples for the training loop. The gradient stays where the
// loop's Learner takes it from (worker/node/learner.h). Two implementations: a node's micro-batches
// (node_objective.h), and the loop of a Python program (worker/python/module_objective.h).
//
// Not thread-safe: the training thread owns it.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "distro/v1/run.pb.h"
#include "worker/plan/node_options.h"

namespace distro::worker {

// A gradient that no upload has used yet; the learner holds it.
struct Gradient {
  double loss = 0;  // mean over the samples, nats a token
  double norm = 0;  // before clipping
  bool finite = true;
  int local_steps = 0;    // that were begun, and whose samples were read
  int skipped_steps = 0;  // of these, not finite
};

// Which samples are held out: of what the worker trains on, or, with local data, of what all hold.
enum class HeldOutText { kOwn, kPublic };

class Objective {
 public:
  virtual ~Objective() = default;

  // Asked before every part of the work; the work is dropped when it is not OK, with its status.
  using GoesOn = absl::FunctionRef<absl::Status()>;

  // Samples that will be asked for soon, in their order, as far as they are announced: those of the
  // round whose gradients are taken now, and of the next one. For who reads ahead; the next call
  // replaces them, and another slot may be asked for all the same.
  virtual void Expect(v1::Slot /*samples*/) {}
  // The mean gradient over the samples, at the parameters or at their copy.
  virtual absl::StatusOr<Gradient> GradientOf(const v1::Slot& samples, GradientAt at,
                                              GoesOn goes_on) = 0;
  // Whether HeldOutLoss can be asked for.
  virtual bool evaluates() const = 0;
  // Mean loss, nats a token, of the held-out samples, as many as the run says, at the parameters.
  // InvalidArgument: there is none.
  virtual absl::StatusOr<double> HeldOutLoss(HeldOutText which, GoesOn goes_on) = 0;
};

}  // namespace distro::worker
