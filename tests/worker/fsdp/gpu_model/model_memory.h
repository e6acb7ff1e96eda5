// The memory of the model's GPUs: a caching allocator, as Torch's, at its most eager. Memory that a
// stream has freed is given out at once to the next that asks on this stream, the latest first,
// whatever other streams still do with it. Other memory comes from a call that may wait for devices
// (model_gpus.h). Thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/torch/device_streams.h"

namespace distro::worker::testing {

class ModelMemory {
 public:
  static ModelMemory& Get();

  void* Allocate(const c10::Stream& stream, size_t bytes);
  void Free(void* memory);
  // Which device has this memory, free or not; nullopt: none.
  std::optional<int> DeviceOf(const void* memory);
  // Returns what is free to the driver.
  void Empty();

 private:
  using Pool = std::tuple<int, int64_t, size_t>;  // device, stream, bytes

  absl::Mutex mu_;
  std::map<const void*, Pool> pool_of_ ABSL_GUARDED_BY(mu_);
  std::map<Pool, std::vector<void*>> free_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::worker::testing
