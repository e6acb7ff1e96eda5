#include "bench/convergence/hostile_worker.h"

#include <algorithm>
#include <cmath>

#include "common/base/random.h"
#include "common/update/scale.h"

namespace distro::worker {
namespace {

uint8_t CodeOf(const DeltasSettings& settings, uint8_t code, uint8_t cap,
               std::optional<uint8_t> median) {
  if (settings.attack == "cap" || settings.attack == "inverted_cap") return cap;
  if (settings.attack != "inverted" || settings.attack_multiple == 0 || !median.has_value())
    return code;
  const double scale = std::ldexp(static_cast<double>(ScaleOf(*median)), -kScaleUnitBits);
  return std::min(ScaleCodeOf(settings.attack_multiple * scale), cap);
}

}  // namespace

void Attack(const DeltasSettings& settings, const Layout& layout, const HostileRound& round,
            DeltaUpdate* update) {
  for (size_t i = 0; i < layout.tensors().size(); ++i) {
    const TensorLayout& tensor = layout.tensors()[i];
    for (int64_t b = tensor.first_block; b < tensor.first_block + tensor.matrix.Blocks(); ++b) {
      if (update->empty(b)) continue;
      update->codes[b] = CodeOf(settings, update->codes[b], round.caps[i], round.medians[i]);
    }
  }
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
