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

// Not in the unnamed namespace: DecodeGapBody finds it by its argument.
static void Append(const GapBlock<VoteFormat>& block, Votes* votes) {
  votes->positions.insert(votes->positions.end(), block.positions.begin(),
                          block.positions.begin() + block.count);
  votes->values.insert(votes->values.end(), block.values.begin(),
                       block.values.begin() + block.count);
  votes->offsets.push_back(static_cast<uint32_t>(votes->positions.size()));
}

void EncodeVoteGaps(const Votes& votes, std::string* body) {
  const size_t blocks = votes.offsets.size() - 1;
  GapEncoder<VoteFormat> encoder(blocks);
  for (size_t block = 0; block < blocks; ++block) {
    const uint32_t first = votes.offsets[block];
    const int16_t* const values = votes.values.data() + first;
    encoder.AddBlock(
        votes.offsets[block + 1] - first, votes.positions.data() + first,
        [values](uint32_t i) { return values[i] < 0 ? 1 : 0; },
        [values](uint32_t i) { return static_cast<uint32_t>(std::abs(values[i])) - 1; });
  }
  EncodeGapBody<VoteFormat>({&encoder}, /*threads=*/1, body);
}

uint64_t MaxVoteBodyBytes(uint64_t blocks, uint64_t max_entries, uint64_t max_sum) {
  return MaxEntriesBytes<VoteFormat>(blocks, max_entries, std::min(max_entries, max_sum / 2), 0);
}

absl::StatusOr<Votes> DecodeVoteGaps(absl::string_view body, uint32_t blocks, int threads) {
  return DecodeGapBody<VoteFormat, Votes>(body, blocks, threads);
}

}  // namespace distro
