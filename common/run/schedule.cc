#include "common/run/schedule.h"

#include "common/method/base/learning_rate.h"

namespace distro {

uint32_t SamplesOfRound(const v1::RunConfig& config) {
  return config.samples_per_worker() * StepsOfRound(config);
}

std::vector<v1::Slot> AssignSlots(absl::Span<const std::string> workers, uint64_t round,
                                  uint32_t samples, SamplePool* pool) {
  const size_t first = pool->has_unread() && !workers.empty() ? round % workers.size() : 0;
  std::vector<v1::Slot> slots(workers.size());
  for (size_t i = 0; i < workers.size(); ++i) {
    const size_t at = (first + i) % workers.size();
    slots[at] = pool->Take(workers[at], samples);
  }
  return slots;
}

}  // namespace distro
