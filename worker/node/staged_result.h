// Provides a round's result to the backend of a rank's device: the decoded arrays themselves on the
// host, or a copy of one segment in device memory. While the device works on a segment, the next
// one travels (docs/fsdp.md, "Devices"). Parameters take one pass over the segments, error feedback
// another. Not thread-safe.
//
//   StagedResult result(device, updater.SegmentOrder());
//   DISTRO_RETURN_IF_ERROR(result.Take(&decoded, threads));
//   for (SegmentId segment : updater.SegmentOrder()) ... result.Of<Votes>(segment) ...
//   DISTRO_RETURN_IF_ERROR(device->Finish());
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/method/methods.h"
#include "kernels/device.h"
#include "kernels/replica/round_update.h"
#include "worker/rules/device_result.h"

namespace distro::worker {

class StagedResult final : public DeviceResult {
 public:
  // `device` is borrowed. `order`: the segments of a rank, in the order of a pass.
  StagedResult(Device* device, std::vector<SegmentId> order);

  // Sets the result of the next round, which must stay alive until the device has finished its last
  // pass. Copies the segments into page-locked memory, on `threads` threads, and starts the first
  // one's way.
  absl::Status Take(const DecodedRound* decoded, int threads);
  // The segment's result, by the round's method. Valid, in the order of enqueued work, until
  // another segment is requested. Requires a segment of the constructor's order; it may be
  // requested several times in a row. One that is not next in the order, at the begin of a second
  // pass or after some that a pass leaves out, travels only now.
  template <typename Result>
  auto Of(SegmentId segment) {
    const Result& result = std::get<std::vector<Result>>(*decoded_)[segment.value()];
    if (!device_->has_own_memory()) return OnHost(result);
    const char* at = Request(segment);
    return ViewAt(result, [&at]<typename T>(const std::vector<T>& array) {
      const char* const packed = std::exchange(at, at + PaddedBytes(array.size() * sizeof(T)));
      return absl::MakeConstSpan(reinterpret_cast<const T*>(packed), array.size());
    });
  }
  SegmentDeltas DeltasOf(SegmentId segment) override { return Of<DeltaResult>(segment); }

 private:
  static constexpr size_t kAlignment = 64;  // of an array among those of its segment
  static size_t PaddedBytes(size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  // A segment's arrays, in the order in which they lie in memory.
  using Arrays = absl::InlinedVector<absl::Span<const char>, 5>;
  Arrays ArraysOf(SegmentId segment) const;
  static size_t PackedBytes(const Arrays& arrays);
  static void Pack(const Arrays& arrays, char* to);

  // Where a segment's arrays lie in the page-locked memory, one after another.
  struct Place {
    size_t begin = 0;
    size_t bytes = 0;
  };

  absl::Status Reserve();
  void Start(size_t index);
  // The segment's memory on the device. If it is another one's than before, starts the one after
  // it.
  const char* Request(SegmentId segment);
  size_t PlaceOf(SegmentId segment) const;

  Device* const device_;
  const std::vector<SegmentId> order_;
  const DecodedRound* decoded_ = nullptr;
  std::vector<Place> places_;              // [order]
  std::optional<size_t> current_;          // the place in the order of the last requested segment
  size_t started_ = 0;                     // and of the last one that was sent on its way
  DeviceBuffer pinned_;                    // the whole result
  std::array<DeviceBuffer, 2> on_device_;  // segments with even and odd places
};

}  // namespace distro::worker
