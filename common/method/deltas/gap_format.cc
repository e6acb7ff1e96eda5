#include "common/method/deltas/gap_format.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/method/codec/gap_codec.h"

namespace distro {

template <>
absl::Status GapDecoder<DeltaFormat>::ReadEntries(GapBlock<DeltaFormat>* block) {
  block->code = 0;
  if (block->count == 0) return absl::OkStatus();
  DISTRO_ASSIGN_OR_RETURN(const uint32_t difference, ReadNumber<Scales>());
  state_.format.code += UnZigZag(difference);
  if (state_.format.code < 0 || state_.format.code >= kScaleCodes)
    return Bad(absl::StrCat("scale code ", state_.format.code, " is outside 0..", kScaleCodes - 1));
  block->code = static_cast<uint8_t>(state_.format.code);
  uint32_t next = 0;
  for (uint32_t i = 0; i < block->count; ++i) {
    DISTRO_RETURN_IF_ERROR(ReadPlain());
    bool negative;
    const uint32_t position = next + TakeGap(&negative);
    DISTRO_RETURN_IF_ERROR(CheckPosition(position));
    DISTRO_ASSIGN_OR_RETURN(const uint32_t level, ReadValue());
    block->positions[i] = static_cast<uint16_t>(position);
    block->signs[i] = negative ? -1 : 1;
    block->levels[i] = static_cast<uint8_t>(level);
    // Gaps count from here, so positions ascend and none comes twice.
    next = position + 1;
  }
  return absl::OkStatus();
}

template class GapBody<DeltaFormat>;
template class GapDecoder<DeltaFormat>;

namespace {

// Passes the entries of a group's blocks to the sink, in order.
template <typename Sink>
class DeltaWalk {
 public:
  DeltaWalk(const DeltaResult& deltas, int64_t first, int64_t last, Sink* sink)
      : deltas_(deltas), zeros_(deltas.offsets[first], deltas.offsets[last], sink), sink_(sink) {}

  void Block(int64_t block) {
    if (BlockCount(deltas_, block) == 0) return;
    const int difference = deltas_.codes[block] - code_;
    code_ = deltas_.codes[block];
    sink_->template Number<Scales>(ZigZag(difference));
    uint32_t next = 0;
    for (uint32_t i = deltas_.offsets[block]; i < deltas_.offsets[block + 1]; ++i) {
      zeros_.Before(i, [&](uint32_t at) { return deltas_.levels[at] == 0; });
      sink_->Gap(deltas_.positions[i] - next, deltas_.signs[i] < 0);
      if (zeros_.Ends(i)) sink_->template Number<Levels>(deltas_.levels[i] - 1u);
      next = uint32_t{deltas_.positions[i]} + 1;
    }
  }

 private:
  const DeltaResult& deltas_;
  int code_ = 0;
  PlainRuns<Zeros, Sink> zeros_;
  Sink* const sink_;
};

}  // namespace

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

void EncodeDeltaGaps(const DeltaResult& deltas, std::string* body) {
  EncodeGapBody<DeltaFormat, DeltaWalk>(deltas, body);
}

uint64_t MaxDeltaBodyBytes(uint64_t blocks, uint64_t max_entries) {
  return MaxEntriesBytes<DeltaFormat>(blocks, max_entries, max_entries, kNumberBits<Scales>);
}

absl::StatusOr<DeltaResult> DecodeDeltaGaps(absl::string_view body, uint32_t blocks, int threads) {
  return DecodeGapBody<DeltaFormat, DeltaResult>(body, blocks, threads);
}

}  // namespace distro
