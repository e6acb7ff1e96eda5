// Memory and queues of an emulated GPU, on the CPU. They use every freedom that CUDA has, so that a
// caller that waits too little fails:
// * with kAtFinish nothing runs before Finish, and freed memory is given out again at once, while
//   work that uses it is still enqueued;
// * a copy of the second queue destroys the old content of its target as soon as it may start, and
//   brings the new one as late as AwaitCopies allows.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/cuda/gpu.h"

namespace distro::testing {

enum class EmulatedOrder {
  kAtOnce,
  // Runs everything in Finish: code that reads a result earlier, or frees an argument too early,
  // fails.
  kAtFinish,
};

class EmulatedDevice : public cuda::Gpu {
 public:
  explicit EmulatedDevice(EmulatedOrder order) : order_(order), host_(MakeHostDevice()) {}
  ~EmulatedDevice() override;

  absl::StatusOr<void*> Allocate(size_t bytes) override;  // its content is NaN
  void Free(void* memory) override;
  absl::StatusOr<void*> AllocateHost(size_t bytes) override { return host_->Allocate(bytes); }
  void FreeHost(void* memory) override { host_->Free(memory); }
  void CopyIn(const void* host, size_t bytes, void* device) override;
  void CopyOut(const void* device, size_t bytes, void* host) override;
  void Fill(void* device, unsigned char byte, size_t bytes) override;
  void CopyInBeside(const void* host, size_t bytes, void* device) override;
  void AwaitCopies() override;
  absl::Status Finish() override;

 protected:
  // Runs `work` in its turn.
  void Do(std::function<void()> work);

 private:
  struct Block {
    void* memory = nullptr;
    size_t bytes = 0;
  };

  const EmulatedOrder order_;
  const std::unique_ptr<Device> host_;
  std::vector<std::function<void()>> enqueued_;
  std::vector<std::function<void()>> beside_;  // copies that nothing awaits yet
  std::vector<Block> used_;
  std::vector<Block> free_;  // with kAtFinish
};

}  // namespace distro::testing
