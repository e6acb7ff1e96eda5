// A worker's data, and a model with the run's tensors: the part of training that differs between
// programs. TrainingRun does the rest. Two implementations: NodeWorkload (node_workload.h), and the
// module of a Python program (worker/python/module_workload.h).
//
//   workload->Describe(&join_request);
//   workload->Build(join_response);                 // once; then
//   workload->learner(), workload->objective();     // exist
//
// Not thread-safe: the training thread owns it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/model/checkpoint/companions.h"
#include "common/model/layout/layout.h"
#include "distro/v1/session.pb.h"
#include "worker/node/learner.h"
#include "worker/train/objective.h"

namespace distro::worker {

// Whether the run's tensors are those of `manifest`.
bool HasTensorsOf(const v1::JoinResponse& run, const Manifest& manifest);

// FailedPrecondition with reason `other_run`: an invite names the run `invited`, and this is
// another one. Empty: any run.
absl::Status CheckInvitedRun(const std::string& invited, const v1::RunConfig& config);

class Workload {
 public:
  virtual ~Workload() = default;

  // Sets the description of the data in the request.
  virtual void Describe(v1::JoinRequest* request) const = 0;
  // Makes learner and objective for the joined run. `companions` are the run's, or none where
  // TrainingRun fetches none. InvalidArgument: the model is not supported, or the data does not fit
  // it; names key or token. FailedPrecondition: the run is not for this worker; the reason says
  // why.
  virtual absl::Status Build(const v1::JoinResponse& run, const Companions& companions) = 0;

  // Parts built by Build; they live as long as the workload.
  virtual const Layout& layout() const = 0;
  virtual Learner* learner() = 0;
  virtual Objective* objective() = 0;
  // The number of samples that must divide every slot.
  virtual int micro_batch_samples() const = 0;
};

}  // namespace distro::worker
