#include <utility>

#include "common/base/process/host_memory.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/deltas_backend.h"
#include "worker/fsdp/thread_communicator.h"
#include "worker/node/node_devices.h"

namespace distro::worker {
namespace {

class CpuDevices final : public NodeDevices {
 public:
  DeviceKind kind() const override { return DeviceKind::kCpu; }
  int default_ranks() const override { return 1; }
  absl::Status CheckRanks(int /*ranks*/) const override { return absl::OkStatus(); }

  absl::StatusOr<AvailableMemory> Memory(int /*ranks*/) const override {
    const int64_t bytes = HostMemoryBytes();
    return AvailableMemory{.bytes = bytes,
                           .reserve_bytes = bytes / kHostReserveShare + kProgramBytes,
                           .shared = true,
                           .cuda = false};
  }

  int64_t LibraryBytes() const override { return 0; }

  absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Connect(
      int ranks, absl::Duration timeout, std::shared_ptr<CollectiveTime> time) const override {
    auto communicators =
        MakeThreadGroup(ranks, ThreadGroupOptions{.watchdog = timeout})->TakeCommunicators();
    for (auto& communicator : communicators)
      communicator = TimeCommunicator(std::move(communicator), time);
    return communicators;
  }

  absl::Status Use(int /*rank*/) const override { return absl::OkStatus(); }
  absl::StatusOr<RankDevice> Open(int /*rank*/) const override { return OpenHost(); }
};

}  // namespace

std::shared_ptr<const NodeDevices> MakeCpuDevices() { return std::make_shared<CpuDevices>(); }

RankDevice OpenHost() {
  return {.torch = at::kCPU,
          .memory = MakeHostDevice(),
          .backend = MakeCpuBackend(),
          .deltas = MakeCpuDeltaBackend(),
          .inner = MakeCpuInnerBackend(),
          .pins_host_memory = false,
          .plans_for_shapes = false};
}

}  // namespace distro::worker
