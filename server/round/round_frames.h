// The serialized frames of a round, as the subscription streams them. Pure.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/ids.h"
#include "distro/v1/round.pb.h"
#include "server/round/frame_ring.h"

namespace distro::server {

RoundFrame MakeOpenFrame(EpochId epoch, RoundId round, const v1::RoundOpen& open);

// The payload's frames in order, each at most kMaxFrameBytes.
std::vector<RoundFrame> MakeSegmentFrames(EpochId epoch, RoundId round, SegmentId segment,
                                          absl::string_view payload);

// One of them: `data` is what the payload of `payload_bytes` has at `offset`.
RoundFrame MakeSegmentFrame(EpochId epoch, RoundId round, SegmentId segment, uint64_t offset,
                            uint64_t payload_bytes, absl::string_view data);

// `header` is the record's.
RoundFrame MakeCommitFrame(EpochId epoch, RoundId round, absl::string_view header);

}  // namespace distro::server
