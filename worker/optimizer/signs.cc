#include "worker/optimizer/signs.h"

#include <algorithm>

namespace distro::worker {

SparseUpdate SignsOf(int k, absl::Span<const uint16_t> positions, absl::Span<const float> values) {
  SparseUpdate update{.k = k,
                      .positions = std::vector<uint16_t>(positions.size()),
                      .signs = std::vector<int8_t>(values.size())};
  for (size_t begin = 0; begin < values.size(); begin += k) {
    const auto block = values.subspan(begin, k);
    if (std::all_of(block.begin(), block.end(), [](float c) { return c == 0; })) continue;
    std::copy_n(positions.begin() + begin, k, update.positions.begin() + begin);
    std::transform(block.begin(), block.end(), update.signs.begin() + begin,
                   [](float c) { return static_cast<int8_t>(c < 0 ? -1 : 1); });
  }
  return update;
}

}  // namespace distro::worker
