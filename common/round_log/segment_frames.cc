#include "common/round_log/segment_frames.h"

#include <string>

#include "common/wire/frames.h"

namespace distro {

v1::SegmentFrame MakeSegmentFrame(SegmentId segment, uint64_t offset, uint64_t payload_bytes,
                                  absl::string_view data) {
  v1::SegmentFrame frame;
  frame.set_segment(segment.value());
  frame.set_offset(offset);
  frame.set_payload_bytes(payload_bytes);
  frame.set_data(std::string(data));
  return frame;
}

std::vector<v1::SegmentFrame> MakeSegmentFrames(SegmentId segment, absl::string_view payload) {
  std::vector<v1::SegmentFrame> frames;
  for (uint64_t offset = 0; offset < payload.size();) {
    const uint64_t bytes = FrameBytes(offset, payload.size());
    frames.push_back(
        MakeSegmentFrame(segment, offset, payload.size(), payload.substr(offset, bytes)));
    offset += bytes;
  }
  return frames;
}

}  // namespace distro
