// Small rounds with real payloads for tests of the log and of replicas. Pure functions of their
// arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/ids.h"
#include "common/method/methods.h"
#include "common/method/signs/votes.h"
#include "common/model/layout/layout.h"
#include "common/run/record/committed_round.h"
#include "distro/v1/round.pb.h"

namespace distro::testing {

// Six blocks in three segments: a matrix with padded edges, a 1-D tensor that does not decay, one
// whole block.
Layout SmallLayout();

// Some votes in each block, drawn from `seed`.
Votes SomeVotes(int64_t blocks, uint64_t seed);

struct BuiltRound {
  v1::RoundHeader header;
  std::vector<std::string> payloads;  // [segments]

  std::string header_bytes() const { return header.SerializeAsString(); }
};

// Members alice and bob, both included everywhere; eta 0.25, eta*lambda 0.0625, K = 4.
BuiltRound BuildRound(const Layout& layout, RoundId round, uint64_t predecessor_hash,
                      EpochId epoch = EpochId(1));

// The same with deltas: rate 0.25, outer rate 0.5, caps 200; tensor 0 is sent as DCT. Each block
// has entries at positions 0 and 1.
BuiltRound BuildDeltaRound(const Layout& layout, RoundId round, uint64_t predecessor_hash,
                           EpochId epoch = EpochId(1));

// The round as a follower receives it. Aborts if it is refused.
CommittedRound Committed(const Layout& layout, const BuiltRound& round);

// A frame with `data` at `offset` of a payload of `payload_bytes`.
v1::SegmentFrame MakeSegmentFrame(SegmentId segment, uint64_t offset, uint64_t payload_bytes,
                                  absl::string_view data);

// The frames of the round as they come from the log: segments in order, then the commit.
std::vector<v1::SubscribeRoundsResponse> Frames(const BuiltRound& round,
                                                EpochId epoch = EpochId(1));

// Its decoded result.
inline absl::StatusOr<DecodedRound> Decode(const Layout& layout, const CommittedRound& round,
                                           int threads = 1) {
  return DecodeRound(layout, *round.header, round.payloads, threads);
}

}  // namespace distro::testing
