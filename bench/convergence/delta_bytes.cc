#include "bench/convergence/delta_bytes.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "common/method/deltas/scale.h"
#include "common/method/signs/record_codec.h"

namespace distro::worker {
namespace {

constexpr uint64_t kFloatBytes = 2;

int ZigZag(int x) { return x < 0 ? -2 * x - 1 : 2 * x; }

uint64_t Bytes(double bits) { return static_cast<uint64_t>(std::ceil(bits / 8)); }

}  // namespace

double AdaptiveCost::Add(int number) {
  constexpr double kPrior = 0.1;
  const double probability =
      (counts_[number] + kPrior) / (total_ + kPrior * static_cast<double>(counts_.size()));
  ++counts_[number];
  ++total_;
  return -std::log2(probability);
}

uint64_t DeltaBytes::Upload(const PayloadIdentity& identity, const DeltaMessage& message) {
  SignUpdate update = {.k = message.k, .positions = message.positions, .signs = {}};
  double bits = 0;
  std::set<int> before;
  const auto k = static_cast<size_t>(message.k);
  for (size_t first = 0; first < message.values.size(); first += k) {
    std::set<int> scales;  // of the block
    const auto values = absl::MakeSpan(message.values).subspan(first, k);
    const bool empty = std::ranges::all_of(values, [](int64_t value) { return value == 0; });
    for (size_t i = 0; i < k; ++i) {
      update.signs.push_back(empty ? int8_t{0} : values[i] < 0 ? int8_t{-1} : int8_t{1});
      if (empty) update.positions[first + i] = 0;
      if (values[i] != 0) scales.insert(CoveringScale(std::abs(values[i])));
    }
    if (settings_.values == "float" || settings_.values == "tensor" || empty) continue;
    auto old = before.begin();
    for (const int scale : scales) {
      bits += message.k <= kMaxRecordK
                  ? 8
                  : scales_.Add(ZigZag(scale - (old != before.end() ? *old : 0)));
      if (old != before.end()) ++old;
    }
    if (settings_.values == "two") bits += static_cast<double>(k);
    before = scales;
  }
  const uint64_t values = settings_.values == "float" ? kFloatBytes * message.values.size() : 0;
  return EncodeSignUpdate(identity, update).size() + values + Bytes(bits);
}

uint64_t DeltaBytes::Download(const PayloadIdentity& identity, const RoundedMeans& result) {
  Votes votes = {
      .offsets = result.means.offsets, .positions = result.means.positions, .values = {}};
  for (const int64_t value : result.means.values)
    votes.values.push_back(value < 0 ? int16_t{-1} : int16_t{1});
  const uint64_t signs = EncodeVotes(identity, votes).size();
  if (settings_.levels == 0) return signs + kFloatBytes * votes.values.size();
  double bits = 0;
  int before = 0;
  for (const int code : result.codes) {
    bits += codes_.Add(ZigZag(code - before));
    before = code;
  }
  if (settings_.levels > 1) {
    for (const int level : result.levels) bits += levels_.Add(level);
  }
  return signs + Bytes(bits);
}

}  // namespace distro::worker
