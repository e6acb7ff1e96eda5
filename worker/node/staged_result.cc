#include "worker/node/staged_result.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "kernels/block_site.h"

namespace distro::worker {
namespace {

constexpr size_t kAlignment = 64;  // of an array among those of its segment

size_t PaddedBytes(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

using Arrays = absl::InlinedVector<absl::Span<const char>, 5>;

template <typename... T>
Arrays ArraysOf(const std::vector<T>&... arrays) {
  return {
      absl::MakeSpan(reinterpret_cast<const char*>(arrays.data()), arrays.size() * sizeof(T))...};
}

// In the order in which they lie in memory.
Arrays ArraysOf(const DecodedRound& decoded, SegmentId segment) {
  return std::visit(OfMethod{[&](const std::vector<DeltaResult>& deltas) {
                               const DeltaResult& result = deltas[segment.value()];
                               return ArraysOf(result.offsets, result.positions, result.signs,
                                               result.levels, result.codes);
                             },
                             [&](const std::vector<Votes>& all) {
                               const Votes& votes = all[segment.value()];
                               return ArraysOf(votes.offsets, votes.positions, votes.values);
                             }},
                    decoded);
}

size_t PackedBytes(const Arrays& arrays) {
  size_t bytes = 0;
  for (const auto array : arrays) bytes += PaddedBytes(array.size());
  return bytes;
}

void Pack(const Arrays& arrays, char* to) {
  for (const auto array : arrays) {
    std::copy(array.begin(), array.end(), to);
    to += PaddedBytes(array.size());
  }
}

// Reads packed arrays as those that were packed.
class PackedReader {
 public:
  explicit PackedReader(const char* at) : at_(at) {}
  template <typename T>
  absl::Span<const T> Next(const std::vector<T>& packed) {
    const char* const array = std::exchange(at_, at_ + PaddedBytes(packed.size() * sizeof(T)));
    return {reinterpret_cast<const T*>(array), packed.size()};
  }

 private:
  const char* at_;
};

}  // namespace

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
    Pack(ArraysOf(*decoded_, order_[i]), pinned + places_[i].begin);
  });
  Start(0);
  return absl::OkStatus();
}

absl::Status StagedResult::Reserve() {
  places_.clear();
  size_t end = 0, most = 0;
  for (const SegmentId segment : order_) {
    const Place place = {.begin = end, .bytes = PackedBytes(ArraysOf(*decoded_, segment))};
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

SegmentVotes StagedResult::VotesOf(SegmentId segment) {
  const Votes& votes = std::get<std::vector<Votes>>(*decoded_)[segment.value()];
  if (!device_->has_own_memory()) return OnHost(votes);
  PackedReader packed(Request(segment));
  return {.offsets = votes.offsets,
          .view = {.offsets = packed.Next(votes.offsets),
                   .positions = packed.Next(votes.positions),
                   .values = packed.Next(votes.values)}};
}

SegmentDeltas StagedResult::DeltasOf(SegmentId segment) {
  const DeltaResult& result = std::get<std::vector<DeltaResult>>(*decoded_)[segment.value()];
  if (!device_->has_own_memory()) return OnHost(result);
  PackedReader packed(Request(segment));
  return {.offsets = result.offsets,
          .view = {.offsets = packed.Next(result.offsets),
                   .positions = packed.Next(result.positions),
                   .signs = packed.Next(result.signs),
                   .levels = packed.Next(result.levels),
                   .codes = packed.Next(result.codes)}};
}

}  // namespace distro::worker
