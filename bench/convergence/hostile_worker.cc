#include "bench/convergence/hostile_worker.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "common/base/random.h"
#include "common/method/deltas/scale.h"

namespace distro::worker {
namespace {

uint8_t CodeOf(const DeltasSettings& settings, uint8_t code, uint8_t cap,
               std::optional<uint8_t> median) {
  if (settings.attack.ends_with("cap") || settings.attack == "drift") return cap;
  if (settings.attack != "inverted" || settings.attack_multiple == 0 || !median.has_value())
    return code;
  const double scale = std::ldexp(static_cast<double>(ScaleOf(*median)), -kScaleUnitBits);
  return std::min(ScaleCodeOf(settings.attack_multiple * scale), cap);
}

DeltaUpdate EmptyRecords(const DeltaUpdate& update) {
  return {.k = update.k,
          .positions = std::vector<uint16_t>(update.positions.size()),
          .signs = std::vector<int8_t>(update.signs.size()),
          .codes = std::vector<uint8_t>(update.codes.size())};
}

// Positions and signs of a block that are the same in every round.
void Drift(uint64_t block, DeltaUpdate* update) {
  std::set<uint16_t> chosen;
  for (uint64_t draw = 0; chosen.size() < static_cast<size_t>(update->k); ++draw)
    chosen.insert(static_cast<uint16_t>(SplitMix64(block, draw) % kBlockElements));
  size_t i = block * update->k;
  for (const uint16_t position : chosen) {
    update->positions[i] = position;
    update->signs[i++] = (SplitMix64(block, position) >> 32 & 1) != 0 ? int8_t{1} : int8_t{-1};
  }
}

// Inverts the signs of every third block. The others keep theirs at the smallest scale: they agree
// with honest workers and move nothing.
void InvertThird(const Layout& layout, DeltaUpdate* update) {
  for (int64_t b = 0; b < layout.blocks(); ++b) {
    if (b % 3 == 0)
      AttackSigns("inverted", 0, absl::MakeSpan(update->signs).subspan(b * update->k, update->k));
    else
      update->codes[b] = 0;
  }
}

}  // namespace

void Attack(const DeltasSettings& settings, const Layout& layout, const HostileRound& round,
            DeltaUpdate* update) {
  if (settings.attack_pauses && round.round % 2 == 1) {
    *update = EmptyRecords(*update);
    return;
  }
  for (size_t i = 0; i < layout.tensors().size(); ++i) {
    const TensorLayout& tensor = layout.tensors()[i];
    for (int64_t b = tensor.first_block; b < tensor.first_block + tensor.matrix.Blocks(); ++b) {
      if (update->empty(b)) continue;
      if (settings.attack == "drift") Drift(static_cast<uint64_t>(b), update);
      update->codes[b] = CodeOf(settings, update->codes[b], round.caps[i], round.medians[i]);
    }
  }
  if (settings.attack == "third_inverted_cap") InvertThird(layout, update);
  AttackSigns(settings.attack, round.seed, absl::MakeSpan(update->signs));
}

void AttackSigns(const std::string& attack, uint64_t seed, absl::Span<int8_t> signs) {
  const bool inverts = attack.starts_with("inverted");
  for (size_t i = 0; i < signs.size(); ++i) {
    const bool flips = attack == "random" && (SplitMix64(seed, i) & 1) != 0;
    if (inverts || flips) signs[i] = static_cast<int8_t>(-signs[i]);
  }
}

}  // namespace distro::worker
