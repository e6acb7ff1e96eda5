// Splits payloads into frames, and assembles them at the other end (docs/protocol.md). No gRPC
// here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace distro {

// Maximum data bytes in a frame that is received.
inline constexpr uint64_t kMaxFrameBytes = 512 * 1024;

// Data bytes of the frames that are sent. gRPC shows a message to its reader when it is whole, and
// both ends take a transfer without a message for dead after half a minute: this is what the
// slowest link must carry in that time.
inline constexpr uint64_t kFrameBytes = 128 * 1024;

// Maximum size of a gRPC message at either end: a frame or a round's header, with room to spare.
inline constexpr int kMaxMessageBytes = 1024 * 1024;

// Size of the frame at `offset` of a payload: all frames but the last are full. 0 at the end.
// Requires offset <= total.
inline uint64_t FrameBytes(uint64_t offset, uint64_t total) {
  return std::min(kFrameBytes, total - offset);
}

// Assembles one payload from frames in order. The frames are hostile: a length above the limit does
// not cause an allocation. Not thread-safe.
class PayloadAssembler {
 public:
  // No payload is larger than `max_payload_bytes` (what the layout allows) or empty.
  explicit PayloadAssembler(uint64_t max_payload_bytes) : max_payload_bytes_(max_payload_bytes) {}

  // Adds the next frame. InvalidArgument, without a change: data is empty or above kMaxFrameBytes;
  // payload_bytes is 0, above the limit, or differs from earlier frames; offset is not the end of
  // the last frame; data extends beyond payload_bytes.
  absl::Status Add(uint64_t offset, absl::string_view data, uint64_t payload_bytes);

  bool complete() const { return payload_bytes_ != 0 && bytes_.size() == payload_bytes_; }
  // Bytes received so far, which is the offset of the next frame.
  uint64_t received() const { return bytes_.size(); }
  // The payload. Requires complete(); may be called once.
  std::string Take() { return std::move(bytes_); }

 private:
  const uint64_t max_payload_bytes_;
  uint64_t payload_bytes_ = 0;  // 0 before the first frame
  std::string bytes_;
};

}  // namespace distro
