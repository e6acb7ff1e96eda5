#include "worker/node/staged_result.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"

namespace distro::worker {
namespace {

// Memory for the largest such array of all segments.
template <typename Segment, typename T>
absl::Status Reserve(const std::vector<Segment>& segments, std::vector<T> Segment::*array,
                     DeviceBuffer* buffer) {
  size_t most = 0;
  for (const Segment& segment : segments) most = std::max(most, (segment.*array).size());
  return buffer->Reserve(most * sizeof(T));
}

// The array's copy in the buffer; copies it unless it is already there.
template <typename T>
absl::Span<const T> Staged(const std::vector<T>& host, bool is_there, Device* device,
                           const DeviceBuffer& buffer) {
  if (!is_there) device->CopyIn(host.data(), host.size() * sizeof(T), buffer.data());
  return {static_cast<const T*>(buffer.data()), host.size()};
}

}  // namespace

StagedResult::StagedResult(Device* device)
    : device_(device),
      offsets_(device),
      positions_(device),
      values_(device),
      signs_(device),
      levels_(device),
      codes_(device) {}

absl::Status StagedResult::Take(const DecodedRound* decoded) {
  decoded_ = decoded;
  copied_.reset();
  if (!device_->has_own_memory()) return absl::OkStatus();
  if (!decoded->votes.empty()) {
    DISTRO_RETURN_IF_ERROR(Reserve(decoded->votes, &Votes::offsets, &offsets_));
    DISTRO_RETURN_IF_ERROR(Reserve(decoded->votes, &Votes::positions, &positions_));
    return Reserve(decoded->votes, &Votes::values, &values_);
  }
  DISTRO_RETURN_IF_ERROR(Reserve(decoded->deltas, &DeltaResult::offsets, &offsets_));
  DISTRO_RETURN_IF_ERROR(Reserve(decoded->deltas, &DeltaResult::positions, &positions_));
  DISTRO_RETURN_IF_ERROR(Reserve(decoded->deltas, &DeltaResult::signs, &signs_));
  DISTRO_RETURN_IF_ERROR(Reserve(decoded->deltas, &DeltaResult::levels, &levels_));
  return Reserve(decoded->deltas, &DeltaResult::codes, &codes_);
}

bool StagedResult::IsThere(SegmentId segment) { return std::exchange(copied_, segment) == segment; }

SegmentVotes StagedResult::VotesOf(SegmentId segment) {
  const Votes& votes = decoded_->votes[segment.value()];
  if (!device_->has_own_memory()) return OnHost(votes);
  const bool is_there = IsThere(segment);
  return {.offsets = votes.offsets,
          .view = {.offsets = Staged(votes.offsets, is_there, device_, offsets_),
                   .positions = Staged(votes.positions, is_there, device_, positions_),
                   .values = Staged(votes.values, is_there, device_, values_)}};
}

SegmentDeltas StagedResult::DeltasOf(SegmentId segment) {
  const DeltaResult& result = decoded_->deltas[segment.value()];
  if (!device_->has_own_memory()) return OnHost(result);
  const bool is_there = IsThere(segment);
  return {.offsets = result.offsets,
          .view = {.offsets = Staged(result.offsets, is_there, device_, offsets_),
                   .positions = Staged(result.positions, is_there, device_, positions_),
                   .signs = Staged(result.signs, is_there, device_, signs_),
                   .levels = Staged(result.levels, is_there, device_, levels_),
                   .codes = Staged(result.codes, is_there, device_, codes_)}};
}

}  // namespace distro::worker
