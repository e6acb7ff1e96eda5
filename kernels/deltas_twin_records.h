// Records of a worker's update under the deltas method, on the host and on a device; one memory if
// the device uses the host's (kernels/device.h). Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/method/deltas/update.h"
#include "kernels/deltas_view.h"
#include "kernels/device.h"

namespace distro {

class TwinRecords {
 public:
  // `device` is borrowed.
  explicit TwinRecords(Device* device) : positions_(device), signs_(device), codes_(device) {}

  // A change of the size discards the content.
  absl::Status Resize(int64_t blocks, int k) {
    k_ = k;
    DISTRO_RETURN_IF_ERROR(positions_.Resize(blocks * k));
    DISTRO_RETURN_IF_ERROR(signs_.Resize(blocks * k));
    return codes_.Resize(blocks);
  }
  DeltaRecordsView host() const {
    return {
        .k = k_, .positions = positions_.host(), .signs = signs_.host(), .codes = codes_.host()};
  }
  // The records of these blocks, on the device.
  DeltaRecords OnDevice(BlockRange blocks) {
    const int64_t first = blocks.first * k_, entries = blocks.count * k_;
    return {.k = k_,
            .positions = positions_.device().subspan(first, entries),
            .signs = signs_.device().subspan(first, entries),
            .codes = codes_.device().subspan(blocks.first, blocks.count)};
  }
  // Enqueued.
  void CopyOut() {
    positions_.CopyOut();
    signs_.CopyOut();
    codes_.CopyOut();
  }
  // Takes the records of an update; enqueued.
  absl::Status Assign(const DeltaUpdate& update) {
    DISTRO_RETURN_IF_ERROR(Resize(update.blocks(), update.k));
    std::ranges::copy(update.positions, positions_.host().begin());
    std::ranges::copy(update.signs, signs_.host().begin());
    std::ranges::copy(update.codes, codes_.host().begin());
    positions_.CopyIn();
    signs_.CopyIn();
    codes_.CopyIn();
    return absl::OkStatus();
  }

 private:
  int k_ = 0;
  TwinArray<uint16_t> positions_;
  TwinArray<int8_t> signs_;
  TwinArray<uint8_t> codes_;
};

}  // namespace distro
