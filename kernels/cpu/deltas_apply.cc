#include "kernels/cpu/deltas_apply.h"

#include "common/method/deltas/scale.h"
#include "kernels/deltas_step.h"

namespace distro::exact {

std::optional<BlockDeltas> DeltasOfBlock(const DeltasView& result, int64_t block,
                                         const BlockSite& site, bool as_dct) {
  const uint32_t begin = result.offsets[block] - result.offsets[0];
  const uint32_t end = result.offsets[block + 1] - result.offsets[0];
  const BlockExtent extent = as_dct ? BlockExtent{} : ExtentOf(site);
  int previous = -1;
  for (uint32_t i = begin; i < end; ++i) {
    const int position = result.positions[i], sign = result.signs[i];
    if (position <= previous || position >= kBlockElements || !extent.Contains(position) ||
        (sign != 1 && sign != -1) || result.levels[i] >= kLevels) {
      return std::nullopt;
    }
    previous = position;
  }
  return BlockDeltas{.positions = result.positions.data() + begin,
                     .signs = result.signs.data() + begin,
                     .levels = result.levels.data() + begin,
                     .count = static_cast<int>(end - begin),
                     .code = result.codes[block]};
}

void CheckDeltas(const DeltasView& result, int64_t blocks) {
  CheckShape(result.offsets.size() == static_cast<size_t>(blocks) + 1 &&
                 result.codes.size() == static_cast<size_t>(blocks),
             "offsets or codes of deltas are not of the range");
  for (int64_t b = 0; b < blocks; ++b)
    CheckShape(result.offsets[b] <= result.offsets[b + 1], "offsets of deltas are not ascending");
  const uint32_t entries = result.offsets[blocks] - result.offsets[0];
  CheckShape(result.positions.size() == entries && result.signs.size() == entries &&
                 result.levels.size() == entries,
             "entries of deltas do not match the offsets");
}

void SubtractEntries(const BlockSite& site, float alpha, const BlockDeltas& deltas,
                     float* parameters) {
  for (int i = 0; i < deltas.count; ++i) {
    const int position = deltas.positions[i];
    const float step = ElementStep(alpha, deltas.code, deltas.levels[i]);
    float& p =
        parameters[site.offset + position / kBlockSide * site.stride + position % kBlockSide];
    p = deltas.signs[i] < 0 ? p + step : p - step;
  }
}

float FormVotes(const BlockDeltas& deltas, float alpha, int16_t* values) {
  uint32_t counts[kLevels] = {};
  for (int i = 0; i < deltas.count; ++i) ++counts[deltas.levels[i]];
  const int shift = FrequencyShift(counts);
  for (int i = 0; i < deltas.count; ++i)
    values[i] = static_cast<int16_t>(deltas.signs[i] * FrequencyPart(deltas.levels[i], shift));
  return FrequencyStep(alpha, deltas.code, shift);
}

}  // namespace distro::exact
