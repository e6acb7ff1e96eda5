// The payload of one segment: what a worker uploads and what everyone downloads
// (docs/payload_format.md).
//
//   payload  = header body checksum
//   header   = 40 bytes: "DSTP", version, kind, k, layout hash, round, segment, blocks, body bytes
//   checksum = XXH3-64 of all bytes before it
//
// Encoders are canonical: a decoder accepts only what an encoder makes, so encode(decode(b)) == b.
// All decoders take hostile bytes: nothing is reserved by a length that was not compared, and every
// fault is an InvalidArgument that names both values. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/ids.h"
#include "common/layout/layout.h"
#include "common/update/sparse_update.h"
#include "common/update/votes.h"

namespace distro {

enum class PayloadKind : uint8_t {
  kUpdateRecords = 1,  // K <= 8
  kUpdateGaps = 2,     // K > 8
  kVotes = 3,
};

inline constexpr uint64_t kPayloadHeaderBytes = 40;
inline constexpr uint64_t kPayloadFramingBytes = kPayloadHeaderBytes + 8;  // header and checksum

// Which segment of which round of which layout a payload is of.
struct PayloadIdentity {
  uint64_t layout_hash = 0;  // Manifest::short_hash()
  RoundId round;
  SegmentId segment;
};

// What a receiver knows before it reads a payload.
struct PayloadExpectation {
  uint64_t layout_hash = 0;
  RoundId round;
  SegmentId segment;
  uint32_t blocks = 0;  // Layout::SegmentBlocks(segment)
  int k = 0;            // of updates, 1..4096; votes ignore it
};

// Of a segment of a layout.
PayloadExpectation ExpectPayload(const Layout& layout, RoundId round, SegmentId segment, int k = 0);

struct PayloadHeader {
  PayloadKind kind = PayloadKind::kUpdateRecords;
  int k = 0;  // of updates; 0 for votes
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

// Requires a valid update with 1 <= k <= 4096: records for k <= 8, gaps above.
std::string EncodeUpdate(const PayloadIdentity& identity, const SparseUpdate& update);

// A payload that passes is read without an error (common/codec/update_reader.h).
absl::Status ValidateUpdate(absl::string_view bytes, const PayloadExpectation& expected);

// Requires valid votes (ValidateVotes).
std::string EncodeVotes(const PayloadIdentity& identity, const Votes& votes);
// `threads` share the work; what is decoded, or wrong, does not depend on how many. Requires
// threads >= 1.
absl::StatusOr<Votes> DecodeVotes(absl::string_view bytes, const PayloadExpectation& expected,
                                  int threads = 1);

// Checks the header against `expected`, the body's length and the checksum, not the body.
absl::StatusOr<PayloadView> OpenUpdatePayload(absl::string_view bytes,
                                              const PayloadExpectation& expected);
absl::StatusOr<PayloadView> OpenVotesPayload(absl::string_view bytes,
                                             const PayloadExpectation& expected);

// The size of every update payload with k <= 8.
uint64_t RecordUpdatePayloadBytes(uint64_t blocks, int k);
// What a receiver compares a length with before it reserves. The votes of a block sum to at most
// `max_sum` (K * sum of weights).
uint64_t MaxUpdatePayloadBytes(uint64_t blocks, int k);
uint64_t MaxVotesPayloadBytes(uint64_t blocks, int max_sum = kMaxVotesPerBlock);

// XXH3-64 of the whole payload: what a commit lists for a segment.
uint64_t PayloadChecksum(absl::string_view bytes);

}  // namespace distro
