// A committed round, whose result may be applied: the record's header and its segments' payloads,
// checked against the layout. The log and a subscription deliver the same bytes. Immutable; cheap
// to copy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/ids.h"
#include "common/base/shared_bytes.h"
#include "common/model/layout/layout.h"
#include "distro/v1/round.pb.h"

namespace distro {

// Maximum size of a header: it is sent in one message.
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

// The number of segments in which members[member] is included, and whether there is one. Require a
// header accepted by ParseRoundHeader and a valid member.
int IncludedSegments(const v1::RoundHeader& header, int member);
bool IsIncluded(const v1::RoundHeader& header, int member);

// Payload bytes of a round's result, in all segments.
uint64_t ResultBytes(const v1::RoundHeader& header);

// Parses and checks a header: members are ascending by name, have a known state, and a sum of K *
// weight of at most 32767; members of weight 0 (on probation) are included in no segment; there is
// one entry per segment of the layout; bitmaps have the exact size, and unused bits are 0; payload
// sizes are possible for the segment; all segments have a SHA-256, or none. InvalidArgument names
// the round and the field.
absl::StatusOr<v1::RoundHeader> ParseRoundHeader(absl::string_view bytes, const Layout& layout);

// Combines a header and its payloads. InvalidArgument: the header is invalid, or a payload is
// missing or differs from its listed size or checksum; the message names round and segment. Does
// not decode payloads.
absl::StatusOr<CommittedRound> MakeCommittedRound(absl::string_view header_bytes,
                                                  std::vector<SharedBytes> payloads,
                                                  const Layout& layout);

}  // namespace distro
