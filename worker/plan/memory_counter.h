// Counts the bytes that a rank has allocated, by purpose. Thread-safe: several threads may allocate
// for one rank. Counts what goes through it (RankBuffer, gathered units); activations belong to
// Torch and are measured by its allocators.
#pragma once

#include <array>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace distro::worker {

enum class MemoryCategory {
  kParameters,   // f32 master copy
  kGradients,    // f32 sums
  kMomentum,     // and other state of the optimizer
  kGathered,     // units for computation: gathered, or copied to param_dtype
  kActivations,  // saved by forward for backward, and temporaries of a unit
  kWorkspace,    // gradients being reduced, pending coefficients, lookahead, libraries
};
inline constexpr int kMemoryCategories = 6;
using MemoryByCategory = std::array<int64_t, kMemoryCategories>;  // bytes

absl::string_view Name(MemoryCategory category);

class MemoryCounter {
 public:
  void Add(MemoryCategory category, int64_t bytes);
  void Remove(MemoryCategory category, int64_t bytes);

  int64_t now(MemoryCategory category) const;
  // The maximum since the start.
  int64_t peak(MemoryCategory category) const;

 private:
  mutable absl::Mutex mu_;
  MemoryByCategory now_ ABSL_GUARDED_BY(mu_) = {};
  MemoryByCategory peaks_ ABSL_GUARDED_BY(mu_) = {};
};

}  // namespace distro::worker
