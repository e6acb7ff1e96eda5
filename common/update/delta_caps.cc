#include "common/update/delta_caps.h"

#include <algorithm>
#include <utility>

#include "common/base/median.h"
#include "common/update/scale.h"

namespace distro {
namespace {

constexpr size_t kLeastWorkers = 3;
constexpr int64_t kOne = int64_t{1} << kScaleUnitBits;  // in units
constexpr int64_t kCeiling = 16;                        // of the rates

// code(min(units, 2^44), 1).
int CodeOfUnits(int64_t units) { return ChooseScale(std::min(units, kOne), 1).value_or(0); }

}  // namespace

void AddLargestCodes(const Layout& layout, SegmentId segment, const DeltaUpdate& update,
                     std::vector<std::optional<uint8_t>>* largest) {
  largest->resize(layout.tensors().size());
  for (const BlockRun& run : layout.SegmentRuns(segment)) {
    std::optional<uint8_t>& code = (*largest)[run.tensor];
    for (int64_t block = run.offset; block < run.offset + run.blocks; ++block) {
      if (!update.empty(block)) code = std::max(code.value_or(0), update.codes[block]);
    }
  }
}

std::optional<uint8_t> MedianOfLargest(std::vector<uint8_t> codes) {
  if (codes.size() < kLeastWorkers) return std::nullopt;
  return LowerMedian(std::move(codes));
}

uint8_t DeltaCap(absl::Span<const float> rates, std::optional<uint8_t> median, int growth) {
  int64_t units = 0;
  for (const float rate : rates) units = std::min(units + ScaleUnits(rate), kOne);
  const int ceiling = CodeOfUnits(kCeiling * units), floor = CodeOfUnits(units);
  if (!median.has_value()) return static_cast<uint8_t>(ceiling);
  return static_cast<uint8_t>(std::min(ceiling, std::max(floor, *median + growth)));
}

}  // namespace distro
