#include "tests/worker/fsdp/gpu_model/model_memory.h"

#include <cstdlib>
#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "tests/worker/fsdp/gpu_model/model_gpus.h"

namespace distro::worker::testing {
namespace {

constexpr size_t kUnit = 512;

}  // namespace

ModelMemory& ModelMemory::Get() {
  static auto* const memory = new ModelMemory;
  return *memory;
}

void* ModelMemory::Allocate(const c10::Stream& stream, size_t bytes) {
  if (bytes == 0) return nullptr;
  const Pool pool = {stream.device_index(), stream.id(), (bytes + kUnit - 1) / kUnit * kUnit};
  {
    absl::MutexLock lock(&mu_);
    std::vector<void*>& free = free_[pool];
    if (!free.empty()) {
      void* const memory = free.back();
      free.pop_back();
      return memory;
    }
  }
  ModelGpus::Get().CheckBlockingCall(absl::StrCat("an allocation of ", bytes, " bytes"));
  void* const memory = std::aligned_alloc(kUnit, std::get<size_t>(pool));
  std::memset(memory, 0xff, std::get<size_t>(pool));  // no number
  absl::MutexLock lock(&mu_);
  pool_of_[memory] = pool;
  return memory;
}

void ModelMemory::Free(void* memory) {
  if (memory == nullptr) return;
  absl::MutexLock lock(&mu_);
  free_[pool_of_.at(memory)].push_back(memory);
}

std::optional<int> ModelMemory::DeviceOf(const void* memory) {
  absl::MutexLock lock(&mu_);
  auto after = pool_of_.upper_bound(memory);
  if (after == pool_of_.begin()) return std::nullopt;
  const auto& [begin, pool] = *std::prev(after);
  if (static_cast<const char*>(memory) >=
      static_cast<const char*>(begin) + std::get<size_t>(pool)) {
    return std::nullopt;
  }
  return std::get<int>(pool);
}

void ModelMemory::Empty() {
  absl::MutexLock lock(&mu_);
  for (const auto& [pool, blocks] : free_) {
    for (void* const memory : blocks) {
      pool_of_.erase(memory);
      std::free(memory);
    }
  }
  free_.clear();
}

}  // namespace distro::worker::testing
