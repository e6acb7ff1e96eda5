#include "kernels/cpu/deltas_records.h"

#include <algorithm>
#include <optional>

namespace distro {

void AppendRecord(absl::Span<const uint16_t> positions, absl::Span<const float> values, int inside,
                  uint8_t cap, DeltaUpdate* update) {
  int64_t sum = 0;
  for (const float value : values) sum += ScaleUnits(value);
  const std::optional<uint8_t> code = ChooseScale(sum, inside);
  update->codes.push_back(std::min(code.value_or(0), cap));
  if (!code.has_value()) {
    update->positions.resize(update->positions.size() + positions.size());
    update->signs.resize(update->signs.size() + values.size());
    return;
  }
  update->positions.insert(update->positions.end(), positions.begin(), positions.end());
  for (const float value : values) update->signs.push_back(value < 0 ? int8_t{-1} : int8_t{1});
}

}  // namespace distro
