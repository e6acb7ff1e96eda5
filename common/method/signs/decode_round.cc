#include "common/method/signs/decode_round.h"

#include "common/method/signs/payload.h"

namespace distro {

absl::StatusOr<std::vector<Votes>> DecodeSignRound(const RoundPayloads& round, int threads) {
  return DecodeSegments<Votes>(round.layout, threads, [&](SegmentId segment, int threads_each) {
    return DecodeVotes(round.Of(segment), ExpectPayload(round.layout, round.id(), segment),
                       threads_each);
  });
}

}  // namespace distro
