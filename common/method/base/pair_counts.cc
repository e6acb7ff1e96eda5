#include "common/method/base/pair_counts.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace distro {

double AgreementCounts::Score() const {
  if (common() == 0) return 0;
  const double difference = static_cast<double>(agree) - static_cast<double>(disagree);
  return difference / std::sqrt(static_cast<double>(common()));
}

double AgreementCounts::Share() const {
  return common() == 0 ? 0 : Score() / std::sqrt(static_cast<double>(common()));
}

void PairCounts::AddBlock(const BlockExtent& extent, absl::Span<const SentSigns> sent) {
  entries_.clear();
  for (size_t w = 0; w < sent.size(); ++w) {
    for (size_t i = 0; i < sent[w].positions.size(); ++i) {
      const uint16_t position = sent[w].positions[i];
      const int8_t sign = sent[w].signs[i];
      if (sign == 0 || !extent.Contains(position)) continue;
      int32_t& first = first_[position];
      for (int32_t e = first; e >= 0; e = entries_[e].next) {
        AgreementCounts& counts = counts_[entries_[e].worker * workers_ + w];
        ++(entries_[e].sign == sign ? counts.agree : counts.disagree);
      }
      entries_.push_back({.worker = static_cast<uint32_t>(w), .sign = sign, .next = first});
      first = static_cast<int32_t>(entries_.size()) - 1;
    }
  }
  for (const SentSigns& of : sent) {
    for (const uint16_t position : of.positions) first_[position] = -1;
  }
}

namespace {

// Bit c is 1 for each column of the row inside the tensor.
uint64_t ColumnsOf(const BlockExtent& extent, int row) {
  const int columns = extent.ColsOfRow(row);
  return columns == kBlockSide ? UINT64_MAX : (uint64_t{1} << columns) - 1;
}

uint64_t RowOf(absl::string_view signs, int row) {
  uint64_t bits;
  static_assert(kBlockSide == 8 * sizeof(bits));
  std::memcpy(&bits, signs.data() + row * sizeof(bits), sizeof(bits));
  return bits;
}

uint64_t Disagreements(const BlockExtent& extent, absl::string_view a, absl::string_view b) {
  uint64_t count = 0;
  for (int row = 0; row < extent.rows; ++row)
    count += std::popcount((RowOf(a, row) ^ RowOf(b, row)) & ColumnsOf(extent, row));
  return count;
}

}  // namespace

void PairCounts::AddBlock(const BlockExtent& extent, absl::Span<const absl::string_view> signs) {
  const auto elements = static_cast<uint64_t>(extent.Elements());
  for (size_t a = 0; a < signs.size(); ++a) {
    for (size_t b = a + 1; b < signs.size(); ++b) {
      if (signs[a].empty() || signs[b].empty()) continue;
      const uint64_t disagree = Disagreements(extent, signs[a], signs[b]);
      counts_[a * workers_ + b].agree += elements - disagree;
      counts_[a * workers_ + b].disagree += disagree;
    }
  }
}

}  // namespace distro
