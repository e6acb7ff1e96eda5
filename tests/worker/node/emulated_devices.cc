#include "tests/worker/node/emulated_devices.h"

#include <limits>
#include <utility>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/deltas_backend.h"
#include "tests/kernels/emulated_cuda.h"
#include "tests/kernels/forwarding_device.h"
#include "worker/fsdp/thread_communicator.h"
#include "worker/node/torch_inner_backend.h"

namespace distro::worker::testing {
namespace {

using distro::testing::ForwardingDevice;

class EmulatedDevices : public NodeDevices {
 public:
  DeviceKind kind() const override { return DeviceKind::kCuda; }
  int default_ranks() const override { return 2; }
  absl::Status CheckRanks(int ranks) const override {
    return ranks <= 4 ? absl::OkStatus() : absl::InvalidArgumentError("--ranks: there are 4 GPUs");
  }
  absl::StatusOr<AvailableMemory> Memory(int /*ranks*/) const override {
    return AvailableMemory{
        .bytes = int64_t{1} << 30, .reserve_bytes = 0, .shared = false, .cuda = true};
  }
  int64_t LibraryBytes() const override { return kCublasHandles * kCublasWorkspaceBytes; }
  absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Connect(
      int ranks, absl::Duration timeout, std::shared_ptr<CollectiveTime> /*time*/) const override {
    return MakeThreadGroup(ranks, {.watchdog = timeout})->TakeCommunicators();
  }
  absl::Status Use(int /*rank*/) const override { return absl::OkStatus(); }
  absl::StatusOr<RankDevice> Open(int /*rank*/) const override {
    auto gpu = distro::testing::MakeEmulatedGpu();
    RankDevice device{.torch = at::kCPU,
                      .memory = nullptr,
                      .backend = cuda::MakeGpuBackend(gpu.get()),
                      .deltas = cuda::MakeGpuDeltaBackend(gpu.get()),
                      .inner = MakeTorchInnerBackend(at::kCPU),
                      .pins_host_memory = false,
                      .plans_for_shapes = true};
    device.memory = std::move(gpu);
    return device;
  }
};

class WatchedDevice final : public ForwardingDevice {
 public:
  WatchedDevice(std::shared_ptr<Device> device, std::function<void()> finish,
                std::function<void()> gone)
      : ForwardingDevice(std::move(device)), finish_(std::move(finish)), gone_(std::move(gone)) {}
  ~WatchedDevice() override { gone_(); }

  absl::Status Finish() override {
    finish_();
    return ForwardingDevice::Finish();
  }

 private:
  const std::function<void()> finish_;
  const std::function<void()> gone_;
};

class WatchedDevices final : public EmulatedDevices {
 public:
  WatchedDevices(std::function<void()> finish, std::function<void()> gone)
      : finish_(std::move(finish)), gone_(std::move(gone)) {}
  absl::StatusOr<RankDevice> Open(int rank) const override {
    absl::StatusOr<RankDevice> device = EmulatedDevices::Open(rank);
    if (rank == 1)
      device->memory = std::make_shared<WatchedDevice>(std::move(device->memory), finish_, gone_);
    return device;
  }

 private:
  const std::function<void()> finish_;
  const std::function<void()> gone_;
};

class CountedDevice final : public ForwardingDevice {
 public:
  CountedDevice(std::shared_ptr<Device> device, std::shared_ptr<std::atomic<int64_t>> host_bytes)
      : ForwardingDevice(std::move(device)), host_bytes_(std::move(host_bytes)) {}

  absl::StatusOr<void*> AllocateHost(size_t bytes) override {
    *host_bytes_ += static_cast<int64_t>(bytes);
    return ForwardingDevice::AllocateHost(bytes);
  }

 private:
  const std::shared_ptr<std::atomic<int64_t>> host_bytes_;
};

class CountedDevices final : public EmulatedDevices {
 public:
  explicit CountedDevices(std::shared_ptr<std::atomic<int64_t>> host_bytes)
      : host_bytes_(std::move(host_bytes)) {}
  absl::StatusOr<RankDevice> Open(int rank) const override {
    absl::StatusOr<RankDevice> device = EmulatedDevices::Open(rank);
    device->memory = std::make_shared<CountedDevice>(std::move(device->memory), host_bytes_);
    return device;
  }

 private:
  const std::shared_ptr<std::atomic<int64_t>> host_bytes_;
};

}  // namespace

std::shared_ptr<const NodeDevices> MakeCountedDevices(
    std::shared_ptr<std::atomic<int64_t>> host_bytes) {
  return std::make_shared<CountedDevices>(std::move(host_bytes));
}

std::shared_ptr<const NodeDevices> MakeEmulatedDevices() {
  return std::make_shared<EmulatedDevices>();
}

std::shared_ptr<const NodeDevices> MakeWatchedDevices(std::function<void()> finish,
                                                      std::function<void()> gone) {
  return std::make_shared<WatchedDevices>(std::move(finish), std::move(gone));
}

}  // namespace distro::worker::testing
