// Bulk data in frames: how both ends cut a payload and put it together again (docs/protocol.md). No
// gRPC here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace distro {

// Bytes of data in one frame, at most.
inline constexpr uint64_t kMaxFrameBytes = 512 * 1024;

// Size of one gRPC message that either end accepts, at most: a frame or a round's header with room
// to spare.
inline constexpr int kMaxMessageBytes = 1024 * 1024;

// Size of the frame at `offset` of a payload: all frames are full but the last. 0 at the end.
// Requires offset <= total.
inline uint64_t FrameBytes(uint64_t offset, uint64_t total) {
  return std::min(kMaxFrameBytes, total - offset);
}

// Puts one payload together from frames that come in order. The frames are hostile: nothing is
// reserved by a length that exceeds the limit. Not thread-safe.
class PayloadAssembler {
 public:
  // No payload is larger than `max_payload_bytes` (what the layout allows) or empty.
  explicit PayloadAssembler(uint64_t max_payload_bytes) : max_payload_bytes_(max_payload_bytes) {}

  // Takes the next frame. InvalidArgument, nothing changed: data is empty or above kMaxFrameBytes,
  // payload_bytes is 0, above the limit or not that of the frames before, offset is not where the
  // last frame ended, data passes the end.
  absl::Status Add(uint64_t offset, absl::string_view data, uint64_t payload_bytes);

  bool complete() const { return payload_bytes_ != 0 && bytes_.size() == payload_bytes_; }
  // Bytes so far: the offset of the next frame.
  uint64_t received() const { return bytes_.size(); }
  // The payload. Requires complete(); may be called once.
  std::string Take() { return std::move(bytes_); }

 private:
  const uint64_t max_payload_bytes_;
  uint64_t payload_bytes_ = 0;  // 0 before the first frame
  std::string bytes_;
};

}  // namespace distro
