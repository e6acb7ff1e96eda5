// A worker's data, and a model of the run's tensors that learns from it: the part of training that
// differs between programs. TrainingRun does the rest, the same for all. Two implementations:
// NodeWorkload (node_workload.h), and the module of a Python program
// (worker/python/module_workload.h).
//
//   workload->Describe(&join_request);
//   workload->Build(join_response);             // once; then there are
//   workload->learner(), workload->objective()
//
// Not thread-safe: the training thread owns it.
#pragma once

#include "absl/status/status.h"
#include "common/layout/layout.h"
#include "distro/v1/session.pb.h"
#include "worker/node/learner.h"
#include "worker/train/objective.h"

namespace distro::worker {

// Whether the run's tensors are these.
bool HasTensorsOf(const v1::JoinResponse& run, const Manifest& manifest);

class Workload {
 public:
  virtual ~Workload() = default;

  // What Join says of the data.
  virtual void Describe(v1::JoinRequest* request) const = 0;
  // Makes learner and objective for the run that was joined, whose tensors they have.
  // InvalidArgument: the model is not built here, its tensors are not the run's, or the data does
  // not fit the model; names key, tensor or token. FailedPrecondition: it is no run for this
  // worker; the reason says why.
  virtual absl::Status Build(const v1::JoinResponse& run) = 0;

  // Of what was built; they live as long as the workload.
  virtual const Layout& layout() const = 0;
  virtual Learner* learner() = 0;
  virtual Objective* objective() = 0;
  // Samples by which every slot must be divisible.
  virtual int micro_batch_samples() const = 0;
};

}  // namespace distro::worker
