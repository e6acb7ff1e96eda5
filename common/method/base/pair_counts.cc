#include "common/method/base/pair_counts.h"

#include <cmath>

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

}  // namespace distro
