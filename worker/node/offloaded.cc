#include "worker/node/offloaded.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace distro::worker {

absl::StatusOr<RankBuffer> MakeOffloadedBuffer(const std::shared_ptr<Device>& device,
                                               MemoryCategory category, int64_t elements,
                                               MemoryCounter* counter) {
  if (elements == 0) return RankBuffer::Of(category, {}, nullptr, counter);
  const absl::StatusOr<void*> memory = device->AllocateHost(elements * sizeof(float));
  if (!memory.ok()) {
    return absl::Status(memory.status().code(),
                        absl::StrCat(Name(category), ": ", memory.status().message()));
  }
  std::shared_ptr<void> owner(*memory, [device](void* floats) {
    device->Finish().IgnoreError();  // a copy may be under way where an operation has failed
    device->FreeHost(floats);
  });
  return RankBuffer::Of(category, {static_cast<float*>(*memory), static_cast<size_t>(elements)},
                        std::move(owner), counter);
}

}  // namespace distro::worker
