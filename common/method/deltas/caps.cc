#include "common/method/deltas/caps.h"

#include <algorithm>
#include <utility>

#include "common/base/median.h"
#include "common/method/deltas/scale.h"

namespace distro {
namespace {

constexpr size_t kLeastWorkers = 3;
constexpr int64_t kOne = int64_t{1} << kScaleUnitBits;  // in units
constexpr int64_t kCeiling = 16;                        // of the rates

// code(min(units, 2^44), 1).
int CodeOfUnits(int64_t units) { return ChooseScale(std::min(units, kOne), 1).value_or(0); }

std::optional<uint8_t> MedianOf(absl::Span<const uint32_t> medians, size_t tensor) {
  if (tensor >= medians.size() || medians[tensor] == 0) return std::nullopt;
  return static_cast<uint8_t>(medians[tensor] - 1);
}

}  // namespace

void AddLargestCodes(const Layout& layout, SegmentId segment, const DeltaUpdate& update,
                     LargestCodes* largest) {
  largest->resize(layout.tensors().size());
  for (const BlockRun& run : layout.SegmentRuns(segment)) {
    std::optional<uint8_t>& code = (*largest)[run.tensor];
    for (int64_t block = run.offset; block < run.offset + run.blocks; ++block) {
      if (!update.empty(block)) code = std::max(code.value_or(0), update.codes[block]);
    }
  }
}

std::vector<uint32_t> ScaleMedians(absl::Span<const LargestCodes> workers,
                                   absl::Span<const uint32_t> before, size_t tensors) {
  std::vector<uint32_t> medians;
  for (size_t i = 0; i < tensors; ++i) {
    std::vector<uint8_t> codes;
    for (const LargestCodes& worker : workers) {
      if (i < worker.size() && worker[i].has_value()) codes.push_back(*worker[i]);
    }
    const std::optional<uint8_t> median = MedianOfLargest(std::move(codes), MedianOf(before, i));
    // As in the record: 0 where there is none yet.
    medians.push_back(median.has_value() ? 1u + *median : 0u);
  }
  return medians;
}

std::optional<uint8_t> MedianOfLargest(std::vector<uint8_t> codes, std::optional<uint8_t> before) {
  if (before.has_value()) codes.resize(std::max(codes.size(), kLeastWorkers), *before);
  if (codes.size() < kLeastWorkers) return std::nullopt;
  return LowerMedian(std::move(codes));
}

uint8_t DeltaCap(absl::Span<const float> rates, std::optional<uint8_t> median, int growth) {
  int64_t units = 0;
  // In integers: the same rates give the same cap on every machine.
  for (const float rate : rates) units = std::min(units + ScaleUnits(rate), kOne);
  const int ceiling = CodeOfUnits(kCeiling * units), floor = CodeOfUnits(units);
  if (!median.has_value()) return static_cast<uint8_t>(ceiling);
  return static_cast<uint8_t>(std::min(ceiling, std::max(floor, *median + growth)));
}

std::string DeltaCaps(absl::Span<const float> rates, absl::Span<const uint32_t> medians,
                      size_t tensors) {
  std::string caps;
  for (size_t i = 0; i < tensors; ++i)
    caps.push_back(static_cast<char>(DeltaCap(rates, MedianOf(medians, i))));
  return caps;
}

std::vector<uint8_t> BlockCaps(const Layout& layout, SegmentId segment, absl::string_view caps) {
  std::vector<uint8_t> blocks(layout.SegmentBlocks(segment));
  for (const BlockRun& run : layout.SegmentRuns(segment))
    std::fill_n(blocks.begin() + run.offset, run.blocks, static_cast<uint8_t>(caps[run.tensor]));
  return blocks;
}

}  // namespace distro
