// The frame of all payloads (docs/payload_format.md): a header that describes the body, and a
// checksum.
//
//   payload  = header body checksum
//   header   = 40 bytes: "DSTP", version, kind, k, layout hash, round, segment, blocks, body bytes
//   checksum = XXH3-64 of all bytes before it
//
// A payload covers one segment: of a worker's update, or of a round's result. Pure functions,
// thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/ids.h"
#include "common/model/layout/layout.h"

namespace distro {

enum class PayloadKind : uint8_t {
  kSignRecords = 1,  // signs, K <= 8
  kSignGaps = 2,     // signs, K > 8
  kVotes = 3,
  kDeltaUpdate = 4,
  kDeltaResult = 5,
  kDenseDeltaUpdate = 6,  // K = 4096
  kDenseDeltaResult = 7,  // of a run with K = 4096
};

inline constexpr uint64_t kPayloadHeaderBytes = 40;
inline constexpr uint64_t kPayloadFramingBytes = kPayloadHeaderBytes + 8;  // header and checksum

// Identifies the layout, round and segment of a payload.
struct PayloadIdentity {
  uint64_t layout_hash = 0;  // Manifest::short_hash()
  RoundId round;
  SegmentId segment;
};

// Of a segment of a layout.
PayloadIdentity IdentifyPayload(const Layout& layout, RoundId round, SegmentId segment);

// The header values that a receiver expects.
struct PayloadExpectation {
  uint64_t layout_hash = 0;
  RoundId round;
  SegmentId segment;
  uint32_t blocks = 0;  // Layout::SegmentBlocks(segment)
  int k = 0;            // of the run's updates, 1..4096; ignored for results of signs
};

// Of a segment of a layout.
PayloadExpectation ExpectPayload(const Layout& layout, RoundId round, SegmentId segment, int k = 0);

struct PayloadHeader {
  PayloadKind kind = PayloadKind::kSignRecords;
  int k = 0;  // of updates; 0 for results
  uint64_t layout_hash = 0;
  RoundId round;
  SegmentId segment;
  uint32_t blocks = 0;
  uint64_t body_bytes = 0;
};

struct PayloadView {
  PayloadHeader header;
  absl::string_view body;  // borrowed
};

// A header to which a body is appended.
std::string StartPayload(const PayloadIdentity& identity, PayloadKind kind, int k, int64_t blocks);
// Fills in the body's length and appends the checksum.
std::string FinishPayload(std::string bytes);

// Checks the size, the header against `expected`, the body's length and the checksum, not the body.
// Nothing is reserved. InvalidArgument names what differs, and both values.
absl::StatusOr<PayloadView> OpenPayload(absl::string_view bytes, const PayloadExpectation& expected,
                                        PayloadKind kind, int k, uint64_t max_bytes);

// OK for 1..4096; InvalidArgument otherwise.
absl::Status CheckExpectedK(int k);

}  // namespace distro
