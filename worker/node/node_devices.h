// The devices of a node's ranks (docs/fsdp.md, "Devices"): the only difference between a node on
// GPUs and one on CPUs. Thread-safe; RankDevice is not.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/backend.h"
#include "kernels/deltas_backend.h"
#include "kernels/device.h"
#include "worker/fsdp/collective_time.h"
#include "worker/fsdp/communicator.h"
#include "worker/plan/fsdp_options.h"
#include "worker/plan/memory_plan.h"
#include "worker/rules/deltas/inner_backend.h"
#include "worker/torch/torch.h"

namespace distro::worker {

// The device and backends of one rank, on the current stream of the thread that made it. Torch's
// tensors and `backend` use the same memory.
struct RankDevice {
  at::Device torch = at::kCPU;
  std::shared_ptr<Device> memory;
  std::unique_ptr<Backend> backend;
  // For local steps.
  std::unique_ptr<DeltaBackend> deltas;
  std::unique_ptr<InnerBackend> inner;
  // Whether to pin the memory of tokens, so that the device can read it while it computes.
  bool pins_host_memory = false;
  // Whether libraries plan for every new shape of a batch, so that batches are padded to one.
  bool plans_for_shapes = false;
};

class NodeDevices {
 public:
  virtual ~NodeDevices() = default;

  virtual DeviceKind kind() const = 0;
  // The default number of ranks; 0 without a device.
  virtual int default_ranks() const = 0;
  // InvalidArgument names --ranks: there are not as many devices; or --device: there is none.
  virtual absl::Status CheckRanks(int ranks) const = 0;
  // Requires that no node computes: what earlier ones have freed is available.
  virtual absl::StatusOr<AvailableMemory> Memory(int ranks) const = 0;
  // The bytes that libraries take of a rank's device, and keep, when it first computes.
  virtual int64_t LibraryBytes() const = 0;

  // One communicator per rank. `timeout`: how long ranks wait for each other. `time` receives the
  // time of operations.
  virtual absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Connect(
      int ranks, absl::Duration timeout, std::shared_ptr<CollectiveTime> time) const = 0;

  // Called first on the rank's thread: makes the rank's device the thread's current device.
  virtual absl::Status Use(int rank) const = 0;
  // Called on the rank's thread, after Use.
  virtual absl::StatusOr<RankDevice> Open(int rank) const = 0;
};

std::shared_ptr<const NodeDevices> MakeCpuDevices();

// InvalidArgument: this build does not support such devices; names the build that does.
absl::StatusOr<std::shared_ptr<const NodeDevices>> MakeDevices(DeviceKind kind);

// The host's memory and CPU as a rank's device.
RankDevice OpenHost();

}  // namespace distro::worker
