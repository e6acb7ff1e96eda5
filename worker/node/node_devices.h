// The devices that a node's ranks compute on (docs/fsdp.md, "Devices"): the only thing in which a
// node on GPUs differs from one on CPUs. Thread-safe; RankDevice is not.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/backend.h"
#include "kernels/delta_backend.h"
#include "kernels/device.h"
#include "worker/fsdp/collective_time.h"
#include "worker/fsdp/communicator.h"
#include "worker/optimizer/inner_backend.h"
#include "worker/plan/fsdp_options.h"
#include "worker/plan/memory_plan.h"
#include "worker/torch/torch.h"

namespace distro::worker {

// What one rank computes with, on the current stream of the thread that made it. Where Torch's
// tensors are and what `backend` works on is the same memory.
struct RankDevice {
  at::Device torch = at::kCPU;
  std::unique_ptr<Device> memory;
  std::unique_ptr<Backend> backend;
  // Of local steps.
  std::unique_ptr<DeltaBackend> deltas;
  std::unique_ptr<InnerBackend> inner;
  // Host memory that the device reads and writes beside its computing; on a CPU there is nothing to
  // gain.
  bool pins_host_memory = false;
};

class NodeDevices {
 public:
  virtual ~NodeDevices() = default;

  virtual DeviceKind kind() const = 0;
  // How many ranks a node has that is not told: 0 without a device.
  virtual int default_ranks() const = 0;
  // InvalidArgument names --ranks: there are not as many devices; or --device: there is none.
  virtual absl::Status CheckRanks(int ranks) const = 0;
  virtual absl::StatusOr<AvailableMemory> Memory(int ranks) const = 0;

  // One a rank. `timeout`: how long ranks wait for each other. `time` learns how long they do.
  virtual absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Connect(
      int ranks, absl::Duration timeout, std::shared_ptr<CollectiveTime> time) const = 0;

  // On the rank's thread, before anything else: makes the rank's device the thread's.
  virtual absl::Status Use(int rank) const = 0;
  // On the rank's thread, after Use.
  virtual absl::StatusOr<RankDevice> Open(int rank) const = 0;
};

std::shared_ptr<const NodeDevices> MakeCpuDevices();

// InvalidArgument: this build has no such devices; names the one that does.
absl::StatusOr<std::shared_ptr<const NodeDevices>> MakeDevices(DeviceKind kind);

// The host's memory and CPU as a rank's device.
RankDevice OpenHost();

}  // namespace distro::worker
