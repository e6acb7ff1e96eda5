#include "common/method/deltas/gap_format.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/method/codec/gap_codec.h"
#include "common/method/deltas/gap_encoder.h"

namespace distro {

template <>
absl::Status GapDecoder<DeltaFormat>::ReadEntries(GapBlock<DeltaFormat>* block) {
  block->code = 0;
  block->level_zero = true;
  if (block->count == 0) return absl::OkStatus();
  DISTRO_ASSIGN_OR_RETURN(const uint32_t difference, ReadNumber<Scales>());
  state_.format.code += UnZigZag(difference);
  if (state_.format.code < 0 || state_.format.code >= kScaleCodes)
    return Bad(absl::StrCat("scale code ", state_.format.code, " is outside 0..", kScaleCodes - 1));
  block->code = static_cast<uint8_t>(state_.format.code);
  const auto put = [block](uint32_t entry, uint32_t position, uint32_t sign) {
    block->positions[entry] = static_cast<uint16_t>(position);
    block->signs[entry] = static_cast<int8_t>(1 - 2 * static_cast<int>(sign));  // without a branch
  };
  uint32_t next = 0;
  for (uint32_t i = 0; i < block->count;) {
    DISTRO_RETURN_IF_ERROR(ReadPlain());
    // A run of plain entries at once, else one entry with its level.
    const uint32_t end = i + std::clamp(state_.plain, 1u, block->count - i);
    const BitReader begin = bits_;
    const uint32_t behind = TakeGaps(i, end, next, put);
    // Positions ascend: if one is beyond the block, the last one is.
    if (behind > kBlockElements) return BadPosition(begin, next);
    next = behind;
    if (state_.plain == 0) {
      DISTRO_ASSIGN_OR_RETURN(const uint32_t level, ReadValue());
      block->levels[i] = static_cast<uint8_t>(level);
      block->level_zero &= level == 0;
    } else {
      std::fill(block->levels.begin() + i, block->levels.begin() + end, uint8_t{0});
      state_.plain -= end - i;
    }
    i = end;
  }
  return absl::OkStatus();
}

template class GapBody<DeltaFormat>;
template class GapDecoder<DeltaFormat>;

// Not in the unnamed namespace: DecodeGapBody finds it by its argument.
static void Append(const GapBlock<DeltaFormat>& block, DeltaResult* deltas) {
  deltas->positions.insert(deltas->positions.end(), block.positions.begin(),
                           block.positions.begin() + block.count);
  deltas->signs.insert(deltas->signs.end(), block.signs.begin(), block.signs.begin() + block.count);
  deltas->levels.insert(deltas->levels.end(), block.levels.begin(),
                        block.levels.begin() + block.count);
  deltas->codes.push_back(block.code);
  deltas->offsets.push_back(static_cast<uint32_t>(deltas->positions.size()));
}

void DeltaGapEncoder::AddBlock(uint32_t count, uint8_t code, const uint16_t* positions,
                               const int8_t* signs, const uint8_t* levels) {
  if (gaps_.blocks() % kGroupBlocks == 0) code_ = 0;
  const uint32_t difference = ZigZag(code - code_);
  if (count > 0) code_ = code;
  gaps_.AddBlock(
      count, positions, [signs](uint32_t i) { return signs[i] < 0 ? 1 : 0; },
      [levels](uint32_t i) { return uint32_t{levels[i]}; }, difference);
}

void EncodeDeltaGaps(absl::Span<DeltaGapEncoder> encoders, int threads, std::string* body) {
  std::vector<GapEncoder<DeltaFormat>*> gaps;
  for (DeltaGapEncoder& encoder : encoders) gaps.push_back(&encoder.gaps_);
  EncodeGapBody<DeltaFormat>(gaps, threads, body);
}

void EncodeDeltaGaps(const DeltaResult& deltas, std::string* body) {
  const auto blocks = static_cast<uint64_t>(deltas.blocks());
  DeltaGapEncoder encoder(blocks);
  for (uint64_t block = 0; block < blocks; ++block) {
    const uint32_t first = deltas.offsets[block];
    encoder.AddBlock(deltas.offsets[block + 1] - first, deltas.codes[block],
                     deltas.positions.data() + first, deltas.signs.data() + first,
                     deltas.levels.data() + first);
  }
  EncodeDeltaGaps(absl::MakeSpan(&encoder, 1), /*threads=*/1, body);
}

uint64_t MaxDeltaBodyBytes(uint64_t blocks, uint64_t max_entries) {
  return MaxEntriesBytes<DeltaFormat>(blocks, max_entries, max_entries, kNumberBits<Scales>);
}

absl::StatusOr<DeltaResult> DecodeDeltaGaps(absl::string_view body, uint32_t blocks, int threads) {
  return DecodeGapBody<DeltaFormat, DeltaResult>(body, blocks, threads);
}

}  // namespace distro
