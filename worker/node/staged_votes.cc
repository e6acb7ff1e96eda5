#include "worker/node/staged_votes.h"

#include <algorithm>

#include "common/base/status_macros.h"

namespace distro::worker {
namespace {

template <typename T>
absl::Span<const T> CopyIn(const std::vector<T>& host, Device* device, const DeviceBuffer& buffer) {
  device->CopyIn(host.data(), host.size() * sizeof(T), buffer.data());
  return {static_cast<const T*>(buffer.data()), host.size()};
}
template <typename T>
absl::Span<const T> Copied(const std::vector<T>& host, const DeviceBuffer& buffer) {
  return {static_cast<const T*>(buffer.data()), host.size()};
}

}  // namespace

StagedVotes::StagedVotes(Device* device)
    : device_(device), offsets_(device), positions_(device), values_(device) {}

absl::Status StagedVotes::Take(const std::vector<Votes>* votes) {
  votes_ = votes;
  copied_.reset();
  if (!device_->has_own_memory()) return absl::OkStatus();
  size_t offsets = 0, entries = 0;
  for (const Votes& segment : *votes) {
    offsets = std::max(offsets, segment.offsets.size());
    entries = std::max(entries, segment.values.size());
  }
  DISTRO_RETURN_IF_ERROR(offsets_.Reserve(offsets * sizeof(uint32_t)));
  DISTRO_RETURN_IF_ERROR(positions_.Reserve(entries * sizeof(uint16_t)));
  return values_.Reserve(entries * sizeof(int16_t));
}

SegmentVotes StagedVotes::Of(SegmentId segment) {
  const Votes& votes = (*votes_)[segment.value()];
  if (!device_->has_own_memory()) return OnHost(votes);
  const bool is_there = copied_ == segment;
  copied_ = segment;
  const auto staged = [&](const auto& host, const DeviceBuffer& buffer) {
    return is_there ? Copied(host, buffer) : CopyIn(host, device_, buffer);
  };
  return {.offsets = votes.offsets,
          .view = {.offsets = staged(votes.offsets, offsets_),
                   .positions = staged(votes.positions, positions_),
                   .values = staged(votes.values, values_)}};
}

}  // namespace distro::worker
