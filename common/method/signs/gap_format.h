// The format of the gap codec (common/method/codec/gap_codec.h) for votes, and for updates with K >
// 8, which are votes of 1.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/method/codec/gap_decoder.h"
#include "common/method/codec/gap_model.h"
#include "common/method/signs/votes.h"
#include "common/model/layout/matrix.h"

namespace distro {

struct Ones {  // votes with |V| = 1 in a run
  static constexpr absl::string_view kName = "ones";
  static constexpr int kMantissa = 5;
  static constexpr uint32_t kLargest = 1023;
};
struct Magnitudes {  // |V| - 2
  static constexpr absl::string_view kName = "magnitudes";
  static constexpr int kMantissa = 5;
  static constexpr uint32_t kLargest = 32767 - 2;
};

// An entry is plain if |V| = 1.
struct VoteFormat {
  using Plain = Ones;
  using Other = Magnitudes;
  using OfBlock = void;
  template <template <typename> class Member>
  using Of = OfKinds<Member, Repeats, Counts, Gaps, Ones, Magnitudes>;

  struct Block {
    uint32_t count = 0;
    std::array<uint16_t, kBlockElements> positions;  // [count] ascending, below 4096
    // [count] not 0, sum of |values| <= kMaxVotesPerBlock.
    std::array<int16_t, kBlockElements> values;
  };
  struct GroupState {};
};

template <>
absl::Status GapDecoder<VoteFormat>::ReadEntries(GapBlock<VoteFormat>* block);
extern template class GapBody<VoteFormat>;
extern template class GapDecoder<VoteFormat>;

// Appends the body. Requires valid votes.
void EncodeVoteGaps(const Votes& votes, std::string* body);

// The most bytes that the body of blocks with at most `max_entries` entries and sum of |V|
// `max_sum` takes.
uint64_t MaxVoteBodyBytes(uint64_t blocks, uint64_t max_entries, uint64_t max_sum);

// As DecodeGapBody.
absl::StatusOr<Votes> DecodeVoteGaps(absl::string_view body, uint32_t blocks, int threads);

}  // namespace distro
