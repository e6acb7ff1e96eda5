// Cuts a segment's payload into the frames of a subscription. Pure functions.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/ids.h"
#include "distro/v1/round.pb.h"

namespace distro {

// One frame: the bytes from `offset` on, at most kMaxFrameBytes. Requires offset < payload_bytes
// and data within it.
v1::SegmentFrame MakeSegmentFrame(SegmentId segment, uint64_t offset, uint64_t payload_bytes,
                                  absl::string_view data);

// All frames of a payload, in order. Requires a payload that is not empty.
std::vector<v1::SegmentFrame> MakeSegmentFrames(SegmentId segment, absl::string_view payload);

}  // namespace distro
