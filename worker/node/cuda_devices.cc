// Linked with DISTRO_CUDA: one rank per GPU, over NCCL.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/process/host_memory.h"
#include "common/base/status_macros.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/deltas_backend.h"
#include "worker/fsdp/cuda_device.h"
#include "worker/fsdp/nccl_communicator.h"
#include "worker/fsdp/nccl_library.h"
#include "worker/fsdp/thread_communicator.h"
#include "worker/node/node_devices.h"
#include "worker/node/torch_inner_backend.h"

namespace distro::worker {
namespace {

// For context, NCCL's buffers, and fragmentation of the caching allocator.
constexpr int64_t kLeastReserve = int64_t{768} << 20;
constexpr int64_t kReserveShare = 32;

class CudaDevices final : public NodeDevices {
 public:
  DeviceKind kind() const override { return DeviceKind::kCuda; }
  int default_ranks() const override { return VisibleGpus(); }

  absl::Status CheckRanks(int ranks) const override {
    const int gpus = VisibleGpus();
    if (gpus == 0)
      return absl::InvalidArgumentError(
          "--device: cuda: there is no GPU that this process may use");
    if (ranks <= gpus) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("--ranks: ", ranks, " ranks need a GPU each, and there are ", gpus));
  }

  // The memory of the GPU with the least free memory. Memory of other processes counts as used.
  absl::StatusOr<AvailableMemory> Memory(int ranks) const override {
    AvailableMemory available{.bytes = 0, .reserve_bytes = 0, .shared = false, .cuda = true};
    for (int rank = 0; rank < ranks; ++rank) {
      DISTRO_ASSIGN_OR_RETURN(const GpuMemory memory, MemoryOfGpu(rank));
      if (rank > 0 && memory.free_bytes >= available.bytes) continue;
      available.bytes = memory.free_bytes;
      available.held_bytes = memory.total_bytes - memory.free_bytes;
    }
    available.reserve_bytes = std::max(kLeastReserve, available.bytes / kReserveShare);
    const int64_t host = HostMemoryBytes();
    available.host_bytes = host - host / kHostReserveShare;
    return available;
  }

  int64_t LibraryBytes() const override { return kCublasHandles * CublasWorkspaceBytes(); }

  absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Connect(
      int ranks, absl::Duration timeout, std::shared_ptr<CollectiveTime> time) const override {
    if (ranks == 1) return MakeThreadGroup(1, {.watchdog = timeout})->TakeCommunicators();
    std::vector<at::Device> devices;
    for (int rank = 0; rank < ranks; ++rank) devices.push_back(DeviceOf(rank));
    return MakeNcclCommunicators(NcclLibrary(), devices,
                                 {.watchdog = timeout, .time = std::move(time)});
  }

  absl::Status Use(int rank) const override { return UseGpu(rank); }

  absl::StatusOr<RankDevice> Open(int rank) const override {
    DISTRO_ASSIGN_OR_RETURN(std::unique_ptr<cuda::Gpu> gpu,
                            cuda::MakeGpu(CurrentStream(rank), TorchAllocator()));
    const at::Device torch = DeviceOf(rank);
    RankDevice device{.torch = torch,
                      .memory = nullptr,
                      .backend = cuda::MakeGpuBackend(gpu.get()),
                      .deltas = cuda::MakeGpuDeltaBackend(gpu.get()),
                      .inner = MakeTorchInnerBackend(torch),
                      .pins_host_memory = true,
                      .plans_for_shapes = true};
    device.memory = std::move(gpu);
    return device;
  }

 private:
  static at::Device DeviceOf(int rank) { return {at::kCUDA, static_cast<c10::DeviceIndex>(rank)}; }

  // Allocates from Torch, so that one allocator manages all memory.
  static cuda::GpuAllocator TorchAllocator() {
    return {.allocate = AllocateOnGpu, .free = FreeOnGpu};
  }
};

}  // namespace

absl::StatusOr<std::shared_ptr<const NodeDevices>> MakeDevices(DeviceKind kind) {
  if (kind == DeviceKind::kCpu) return MakeCpuDevices();
  SetUpCublas();
  return std::make_shared<CudaDevices>();
}

}  // namespace distro::worker
