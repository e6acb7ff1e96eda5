// Who reads which samples of a round. Pure.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "distro/v1/run.pb.h"
#include "google/protobuf/repeated_ptr_field.h"

namespace distro::worker {

// The slot of `worker`, if it has one.
inline std::optional<v1::Slot> FindSlot(const google::protobuf::RepeatedPtrField<v1::Slot>& slots,
                                        absl::string_view worker) {
  for (const v1::Slot& slot : slots) {
    if (slot.worker() == worker) return slot;
  }
  return std::nullopt;
}

}  // namespace distro::worker
