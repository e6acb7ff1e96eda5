// The body of an update in a run that sends every position (K = 4096; docs/payload_format.md,
// "Dense deltas"): one bit for each. Canonical and safe with hostile bytes, like the gap codec.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/bitmap.h"
#include "common/method/deltas/update.h"
#include "common/model/layout/matrix.h"

namespace distro {

inline constexpr size_t kBlockSignBytes = kBlockElements / 8;

// Whether updates of deltas with this K are dense, and their results.
constexpr bool IsDense(int k) { return k == kBlockElements; }

// Bytes of a body.
constexpr uint64_t DenseUpdateBytes(uint64_t blocks) {
  return BitmapBytes(blocks) + blocks * (1 + kBlockSignBytes);
}

// Requires a valid update with K = 4096.
void AppendDenseUpdate(const DeltaUpdate& update, std::string* body);

// A body. Borrows the bytes.
class DenseUpdate {
 public:
  // InvalidArgument: it is not the output of AppendDenseUpdate.
  static absl::StatusOr<DenseUpdate> Open(absl::string_view body, uint32_t blocks);

  uint32_t blocks() const { return static_cast<uint32_t>(codes_.size()); }
  bool empty(uint32_t block) const { return !BitOf(filled_, block); }
  uint8_t code(uint32_t block) const { return static_cast<uint8_t>(codes_[block]); }
  // [kBlockSignBytes]: bit i % 8 of byte i / 8 is 1 if the value at position i is negative.
  absl::string_view SignsOf(uint32_t block) const {
    return signs_.substr(block * kBlockSignBytes, kBlockSignBytes);
  }

 private:
  DenseUpdate() = default;
  absl::Status Check() const;

  absl::string_view filled_, codes_, signs_;
};

// OK if the bits of a bitmap beyond the first `bits` are 0. InvalidArgument otherwise.
absl::Status CheckBitmapPadding(absl::string_view bitmap, uint32_t bits);

}  // namespace distro
