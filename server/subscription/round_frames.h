// The serialized frames of a round, as the subscription streams them. Pure.
#pragma once

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "distro/v1/round.pb.h"
#include "server/subscription/frame_ring.h"

namespace distro::server {

// `made_at` is monotonic.
RoundFrame MakeOpenFrame(EpochId epoch, RoundId round, const v1::RoundOpen& open,
                         std::optional<absl::Duration> made_at = std::nullopt);

// The payload's frames in order, each at most kMaxFrameBytes.
std::vector<RoundFrame> MakeSegmentFrames(EpochId epoch, RoundId round, SegmentId segment,
                                          absl::string_view payload,
                                          std::optional<absl::Duration> made_at = std::nullopt);

// One of them: `data` is what the payload of `payload_bytes` has at `offset`.
RoundFrame MakeSegmentFrame(EpochId epoch, RoundId round, SegmentId segment, uint64_t offset,
                            uint64_t payload_bytes, absl::string_view data,
                            std::optional<absl::Duration> made_at = std::nullopt);

// `header` is the record's.
RoundFrame MakeCommitFrame(EpochId epoch, RoundId round, absl::string_view header);

}  // namespace distro::server
