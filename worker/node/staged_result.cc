#include "worker/node/staged_result.h"

#include <algorithm>
#include <utility>

#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "kernels/block_site.h"

namespace distro::worker {

StagedResult::Arrays StagedResult::ArraysOf(SegmentId segment) const {
  Arrays arrays;
  std::visit(
      [&](const auto& results) {
        ViewAt(results[segment.value()], [&]<typename T>(const std::vector<T>& array) {
          arrays.emplace_back(reinterpret_cast<const char*>(array.data()),
                              array.size() * sizeof(T));
          return absl::MakeConstSpan(array);
        });
      },
      *decoded_);
  return arrays;
}

size_t StagedResult::PackedBytes(const Arrays& arrays) {
  size_t bytes = 0;
  for (const auto array : arrays) bytes += PaddedBytes(array.size());
  return bytes;
}

void StagedResult::Pack(const Arrays& arrays, char* to) {
  for (const auto array : arrays) {
    std::copy(array.begin(), array.end(), to);
    to += PaddedBytes(array.size());
  }
}

StagedResult::StagedResult(Device* device, std::vector<SegmentId> order)
    : device_(device),
      order_(std::move(order)),
      pinned_(device, DeviceBuffer::Where::kHost),
      on_device_{DeviceBuffer(device), DeviceBuffer(device)} {}

absl::Status StagedResult::Take(const DecodedRound* decoded, int threads) {
  decoded_ = decoded;
  current_.reset();
  if (!device_->has_own_memory() || order_.empty()) return absl::OkStatus();
  DISTRO_RETURN_IF_ERROR(Reserve());
  char* const pinned = static_cast<char*>(pinned_.data());
  RunParallel(threads, static_cast<int64_t>(order_.size()), [&](int /*thread*/, int64_t i) {
    Pack(ArraysOf(order_[i]), pinned + places_[i].begin);
  });
  Start(0);
  return absl::OkStatus();
}

absl::Status StagedResult::Reserve() {
  places_.clear();
  size_t end = 0, most = 0;
  for (const SegmentId segment : order_) {
    const Place place = {.begin = end, .bytes = PackedBytes(ArraysOf(segment))};
    places_.push_back(place);
    end += place.bytes;
    most = std::max(most, place.bytes);
  }
  DISTRO_RETURN_IF_ERROR(pinned_.Reserve(end));
  for (DeviceBuffer& buffer : on_device_) DISTRO_RETURN_IF_ERROR(buffer.Reserve(most));
  return absl::OkStatus();
}

// All work that reads an earlier segment in the same memory of the device is enqueued.
void StagedResult::Start(size_t index) {
  started_ = index;
  const Place& place = places_[index];
  device_->CopyInBeside(static_cast<const char*>(pinned_.data()) + place.begin, place.bytes,
                        on_device_[index % 2].data());
}

size_t StagedResult::PlaceOf(SegmentId segment) const {
  if (started_ < order_.size() && order_[started_] == segment) return started_;
  const auto place = std::ranges::find(order_, segment);
  CheckShape(place != order_.end(), "a segment is requested that the rank does not have");
  return place - order_.begin();
}

const char* StagedResult::Request(SegmentId segment) {
  if (!current_.has_value() || order_[*current_] != segment) {
    current_ = PlaceOf(segment);
    if (*current_ != started_) Start(*current_);
    device_->AwaitCopies();
    if (*current_ + 1 < order_.size()) Start(*current_ + 1);
  }
  return static_cast<const char*>(on_device_[*current_ % 2].data());
}

}  // namespace distro::worker
