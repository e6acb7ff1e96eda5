#include "worker/plan/memory_counter.h"

#include <algorithm>

namespace distro::worker {

absl::string_view Name(MemoryCategory category) {
  constexpr std::array<absl::string_view, kMemoryCategories> kNames = {
      "parameters", "gradients", "momentum", "gathered", "activations", "workspace"};
  return kNames[static_cast<size_t>(category)];
}

void MemoryCounter::Add(MemoryCategory category, int64_t bytes) {
  const auto i = static_cast<size_t>(category);
  absl::MutexLock lock(&mu_);
  now_[i] += bytes;
  peaks_[i] = std::max(peaks_[i], now_[i]);
}

void MemoryCounter::Remove(MemoryCategory category, int64_t bytes) {
  absl::MutexLock lock(&mu_);
  now_[static_cast<size_t>(category)] -= bytes;
}

int64_t MemoryCounter::now(MemoryCategory category) const {
  absl::MutexLock lock(&mu_);
  return now_[static_cast<size_t>(category)];
}

int64_t MemoryCounter::peak(MemoryCategory category) const {
  absl::MutexLock lock(&mu_);
  return peaks_[static_cast<size_t>(category)];
}

}  // namespace distro::worker
