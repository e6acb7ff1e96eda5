#include "worker/optimizer/signs.h"

#include <algorithm>

namespace distro::worker {

void AppendSigns(absl::Span<const uint16_t> positions, absl::Span<const float> values,
                 SparseUpdate* update) {
  const size_t before = update->signs.size(), k = update->k;
  update->positions.resize(before + values.size());
  update->signs.resize(before + values.size());
  for (size_t begin = 0; begin < values.size(); begin += k) {
    const auto block = values.subspan(begin, k);
    if (std::all_of(block.begin(), block.end(), [](float c) { return c == 0; })) continue;
    std::copy_n(positions.begin() + begin, k, update->positions.begin() + before + begin);
    std::transform(block.begin(), block.end(), update->signs.begin() + before + begin,
                   [](float c) { return static_cast<int8_t>(c < 0 ? -1 : 1); });
  }
}

}  // namespace distro::worker
