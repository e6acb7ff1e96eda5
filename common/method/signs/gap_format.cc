#include "common/method/signs/gap_format.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/method/codec/gap_codec.h"

namespace distro {

template <>
absl::Status GapDecoder<VoteFormat>::ReadEntries(GapBlock<VoteFormat>* block) {
  uint32_t next = 0;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < block->count; ++i) {
    DISTRO_RETURN_IF_ERROR(ReadPlain());
    bool negative;
    const uint32_t position = next + TakeGap(&negative);
    DISTRO_RETURN_IF_ERROR(CheckPosition(position));
    DISTRO_ASSIGN_OR_RETURN(const uint32_t more, ReadValue());
    const uint32_t magnitude = 1 + more;
    sum += magnitude;
    // What the inverse DCT in integers can hold; a result that admission allows never has more.
    if (sum > kMaxVotesPerBlock) {
      return Bad(absl::StrCat("sum of |V| is at least ", sum, ", at most ", kMaxVotesPerBlock));
    }
    block->positions[i] = static_cast<uint16_t>(position);
    block->values[i] =
        static_cast<int16_t>(negative ? -static_cast<int>(magnitude) : static_cast<int>(magnitude));
    next = position + 1;
  }
  return absl::OkStatus();
}

template class GapBody<VoteFormat>;
template class GapDecoder<VoteFormat>;

namespace {

// Passes the entries of a group's blocks to the sink, in order.
template <typename Sink>
class VoteWalk {
 public:
  VoteWalk(const Votes& votes, int64_t first, int64_t last, Sink* sink)
      : votes_(votes), ones_(votes.offsets[first], votes.offsets[last], sink), sink_(sink) {}

  void Block(int64_t block) {
    uint32_t next = 0;
    for (uint32_t i = votes_.offsets[block]; i < votes_.offsets[block + 1]; ++i) {
      ones_.Before(i, [&](uint32_t at) { return std::abs(votes_.values[at]) == 1; });
      sink_->Gap(votes_.positions[i] - next, votes_.values[i] < 0);
      if (ones_.Ends(i)) {
        const auto magnitude = static_cast<uint32_t>(std::abs(votes_.values[i]));
        sink_->template Number<Magnitudes>(magnitude - 2);
      }
      next = uint32_t{votes_.positions[i]} + 1;
    }
  }

 private:
  const Votes& votes_;
  PlainRuns<Ones, Sink> ones_;
  Sink* const sink_;
};

}  // namespace

// Not in the unnamed namespace: DecodeGapBody finds it by its argument.
static void Append(const GapBlock<VoteFormat>& block, Votes* votes) {
  votes->positions.insert(votes->positions.end(), block.positions.begin(),
                          block.positions.begin() + block.count);
  votes->values.insert(votes->values.end(), block.values.begin(),
                       block.values.begin() + block.count);
  votes->offsets.push_back(static_cast<uint32_t>(votes->positions.size()));
}

void EncodeVoteGaps(const Votes& votes, std::string* body) {
  EncodeGapBody<VoteFormat, VoteWalk>(votes, body);
}

uint64_t MaxVoteBodyBytes(uint64_t blocks, uint64_t max_entries, uint64_t max_sum) {
  return MaxEntriesBytes<VoteFormat>(blocks, max_entries, std::min(max_entries, max_sum / 2), 0);
}

absl::StatusOr<Votes> DecodeVoteGaps(absl::string_view body, uint32_t blocks, int threads) {
  return DecodeGapBody<VoteFormat, Votes>(body, blocks, threads);
}

}  // namespace distro
