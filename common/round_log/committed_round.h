// A round whose result may be applied: the record's header and its segments' payloads, all checked
// against the layout. It comes out of the log or of a subscription, the same bytes in both.
// Immutable; cheap to copy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/ids.h"
#include "common/layout/layout.h"
#include "distro/v1/round.pb.h"

namespace distro {

using SharedBytes = std::shared_ptr<const std::string>;

// Size of a header's bytes, at most: it travels in one message.
inline constexpr uint64_t kMaxRoundHeaderBytes = 1000 * 1024;

struct CommittedRound {
  std::shared_ptr<const v1::RoundHeader> header;
  uint64_t hash = 0;                  // XXH3-64 of the header's bytes: the chain hash
  std::vector<SharedBytes> payloads;  // [segments]
  SharedBytes header_bytes = {};      // of the record; null: this round was made here

  RoundId round() const { return RoundId(header->round()); }
  // Index into header->members(), or -1.
  int MemberIndex(absl::string_view name) const;
  // Whether members[member] is included in the segment. Requires a valid member and segment.
  bool Included(int member, SegmentId segment) const;
};

// Segments in which members[member] is included, and whether there is one. Require a header that
// ParseRoundHeader took and a valid member.
int IncludedSegments(const v1::RoundHeader& header, int member);
bool IsIncluded(const v1::RoundHeader& header, int member);

// Payload bytes of a round's result, in all segments.
uint64_t ResultBytes(const v1::RoundHeader& header);

// Parses and checks a header: members ascending by name with a known state and a sum of K * weight
// of at most 32767, weight 0 (on probation) included nowhere, one segment entry a segment of the
// layout, bitmaps of the exact size with unused bits 0, payload sizes within what votes of the
// segment can need. InvalidArgument names the round and the field.
absl::StatusOr<v1::RoundHeader> ParseRoundHeader(absl::string_view bytes, const Layout& layout);

// A header with its payloads. InvalidArgument: the header is bad, or a payload is missing or
// differs from its listed size or checksum; the message names round and segment. Payloads are not
// decoded here.
absl::StatusOr<CommittedRound> MakeCommittedRound(absl::string_view header_bytes,
                                                  std::vector<SharedBytes> payloads,
                                                  const Layout& layout);

}  // namespace distro
