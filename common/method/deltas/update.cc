#include "common/method/deltas/update.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/method/deltas/scale.h"

namespace distro {
namespace {

absl::Status Bad(int64_t block, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("deltas: block ", block, ": ", what));
}

template <typename T>
void Append(absl::Span<const T> values, std::vector<T>* all) {
  all->insert(all->end(), values.begin(), values.end());
}

absl::Status CheckAscending(int64_t block, absl::Span<const uint16_t> positions) {
  int next = 0;
  for (const int position : positions) {
    if (position < next || position >= kBlockElements)
      return Bad(block, absl::StrCat("position ", position, " is outside ", next, "..4095"));
    next = position + 1;
  }
  return absl::OkStatus();
}

absl::Status CheckCode(int64_t block, int code, int cap) {
  if (code <= cap) return absl::OkStatus();
  return Bad(block, absl::StrCat("scale code ", code, " is above the cap ", cap));
}

absl::Status CheckEmpty(int64_t block, absl::Span<const uint16_t> positions,
                        absl::Span<const int8_t> signs, uint8_t code) {
  const bool zeros = std::ranges::all_of(positions, [](int p) { return p == 0; }) &&
                     std::ranges::all_of(signs, [](int s) { return s == 0; }) && code == 0;
  return zeros ? absl::OkStatus() : Bad(block, "an empty record is not all 0");
}

absl::Status CheckRecord(int64_t block, absl::Span<const uint16_t> positions,
                         absl::Span<const int8_t> signs) {
  DISTRO_RETURN_IF_ERROR(CheckAscending(block, positions));
  if (!std::ranges::all_of(signs, [](int sign) { return sign == 1 || sign == -1; }))
    return Bad(block, "a sign is neither + nor -");
  return absl::OkStatus();
}

absl::Status CheckBlocks(int64_t blocks, size_t expected) {
  if (blocks == static_cast<int64_t>(expected)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("deltas: ", blocks, " blocks, expected ", expected));
}

absl::Status CheckResultBlock(const DeltaResult& result, int64_t block, const BlockExtent& extent) {
  const uint32_t begin = result.offsets[block], end = result.offsets[block + 1];
  DISTRO_RETURN_IF_ERROR(
      CheckAscending(block, absl::MakeSpan(result.positions).subspan(begin, end - begin)));
  int least = kLevels;
  for (uint32_t i = begin; i < end; ++i) {
    if (!extent.Contains(result.positions[i]))
      return Bad(block, absl::StrCat("position ", result.positions[i], " is outside the tensor"));
    if (result.signs[i] != 1 && result.signs[i] != -1)
      return Bad(block, "a sign is neither + nor -");
    if (result.levels[i] >= kLevels) return Bad(block, absl::StrCat("level ", result.levels[i]));
    least = std::min<int>(least, result.levels[i]);
  }
  const int code = result.codes[block];
  if (begin == end && code != 0) return Bad(block, "it is empty and has a scale");
  // Canonical: a smaller scale would cover the block.
  if (begin != end && code != 0 && least != 0)
    return Bad(block,
               absl::StrCat("its scale ", code, " is not its largest: the least level is ", least));
  return absl::OkStatus();
}

}  // namespace

DeltaResult ResultOf(const DeltaUpdate& update) {
  DeltaResult result;
  result.codes = update.codes;
  for (int64_t block = 0; block < update.blocks(); ++block) {
    if (!update.empty(block)) {
      Append(update.PositionsOf(block), &result.positions);
      Append(update.SignsOf(block), &result.signs);
    }
    result.offsets.push_back(static_cast<uint32_t>(result.positions.size()));
  }
  result.levels.resize(result.positions.size());
  return result;
}

DeltaResult Concatenate(std::vector<DeltaResult> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  DeltaResult all;
  for (const DeltaResult& part : parts) {
    const uint32_t first = all.offsets.back();
    for (size_t block = 1; block < part.offsets.size(); ++block)
      all.offsets.push_back(first + part.offsets[block]);
    Append<uint16_t>(part.positions, &all.positions);
    Append<int8_t>(part.signs, &all.signs);
    Append<uint8_t>(part.levels, &all.levels);
    Append<uint8_t>(part.codes, &all.codes);
  }
  return all;
}

void DeltaUpdate::ValuesOf(int64_t block, std::vector<int64_t>* values) const {
  const int64_t scale = ScaleOf(codes[block]);
  values->clear();
  for (int64_t i = block * k; i < (block + 1) * k; ++i) values->push_back(signs[i] * scale);
}

std::vector<BlockExtent> DeltaExtents(const Layout& layout, const std::vector<bool>& as_dct,
                                      SegmentId segment) {
  std::vector<BlockExtent> extents = SegmentExtents(layout, segment);
  for (const BlockRun& run : layout.SegmentRuns(segment)) {
    if (as_dct[run.tensor]) std::fill_n(extents.begin() + run.offset, run.blocks, BlockExtent{});
  }
  return extents;
}

absl::Status ValidateDeltaUpdate(const DeltaUpdate& update, absl::Span<const uint8_t> caps) {
  DISTRO_RETURN_IF_ERROR(CheckBlocks(update.blocks(), caps.size()));
  const size_t k = update.k, entries = caps.size() * k;
  if (update.k < 1 || update.k > kBlockElements || update.positions.size() != entries ||
      update.signs.size() != entries) {
    return absl::InvalidArgumentError(absl::StrCat("deltas: ", update.positions.size(),
                                                   " positions and ", update.signs.size(),
                                                   " signs for K = ", update.k));
  }
  for (size_t block = 0; block < caps.size(); ++block) {
    const auto positions = absl::MakeSpan(update.positions).subspan(block * k, k);
    const auto signs = absl::MakeSpan(update.signs).subspan(block * k, k);
    const int64_t number = static_cast<int64_t>(block);
    DISTRO_RETURN_IF_ERROR(CheckCode(number, update.codes[block], caps[block]));
    DISTRO_RETURN_IF_ERROR(update.empty(number)
                               ? CheckEmpty(number, positions, signs, update.codes[block])
                               : CheckRecord(number, positions, signs));
  }
  return absl::OkStatus();
}

namespace {

absl::Status CheckResult(const DeltaResult& result, absl::Span<const BlockExtent> extents,
                         absl::Span<const uint8_t> caps) {
  DISTRO_RETURN_IF_ERROR(CheckBlocks(result.blocks(), extents.size()));
  DISTRO_RETURN_IF_ERROR(CheckBlocks(result.blocks(), caps.size()));
  const size_t entries = result.positions.size();
  if (result.offsets.size() != extents.size() + 1 || result.offsets.front() != 0 ||
      result.offsets.back() != entries || result.signs.size() != entries ||
      result.levels.size() != entries || !std::ranges::is_sorted(result.offsets)) {
    return absl::InvalidArgumentError(absl::StrCat("deltas: offsets do not span ", entries,
                                                   " positions, ", result.signs.size(),
                                                   " signs and ", result.levels.size(), " levels"));
  }
  for (size_t block = 0; block < extents.size(); ++block) {
    const int64_t number = static_cast<int64_t>(block);
    DISTRO_RETURN_IF_ERROR(CheckCode(number, result.codes[block], caps[block]));
    DISTRO_RETURN_IF_ERROR(CheckResultBlock(result, number, extents[block]));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateDeltaResult(const DeltaResult& result, absl::Span<const BlockExtent> extents,
                                 absl::Span<const uint8_t> caps) {
  const absl::Status status = CheckResult(result, extents, caps);
  // The aggregator makes results and the log stores them, so a wrong one is damage.
  return status.ok() ? status : absl::DataLossError(status.message());
}

}  // namespace distro
