// NCCL for the model's GPUs (model_gpus.h): collectives in the order of the calls, of which a call
// is accepted at once or after some questions, as the seed says. Sums are in the type of the parts,
// in descending rank order: not the order of ranks on a CPU. Ranks that call different operations,
// or with other counts, are a mistake, in ModelGpus::failures(). Thread-safe.
#pragma once

#include <memory>

#include "worker/fsdp/nccl_api.h"

namespace distro::worker::testing {

class ModelNccl : public Nccl {
 public:
  enum class Call { kNone, kCalled, kAccepted };

  static constexpr NcclResult kInternalError{3};
  static constexpr NcclResult kRemoteError{6};

  // From now on calls of the rank are accepted never, ...
  virtual void NeverAccept(int rank) = 0;
  // ... return this error, ...
  virtual void Refuse(int rank, NcclResult error) = 0;
  // ... and AsyncError returns this one, of operations that run.
  virtual void FailRunning(int rank, NcclResult error) = 0;
  // Connect returns an error, after it has made one handle.
  virtual void RefuseConnect(NcclResult error) = 0;

  // How far the rank's last call is.
  virtual Call last_call(int rank) = 0;
};

std::shared_ptr<ModelNccl> MakeModelNccl();

}  // namespace distro::worker::testing
