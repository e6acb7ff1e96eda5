#include "common/method/deltas/sparse_combine.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numbers>
#include <utility>

namespace distro {
namespace {

// M(c) = Significand(c) * 2^Exponent(c).
constexpr int Exponent(int code) { return code / 8 + 8; }
static_assert(ScaleOf(77) == int64_t{8 + 77 % 8} << Exponent(77));

// With fewer entries, to look for them among all positions takes longer than to mark them.
constexpr size_t kMostMarked = kBlockElements * 3 / 8;

using Ints = int32_t __attribute__((vector_size(16)));
using Floats = float __attribute__((vector_size(16)));
constexpr size_t kLanes = sizeof(Ints) / sizeof(int32_t);

template <typename Vector>
Vector Load(const void* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof(vector));
  return vector;
}
template <typename Vector>
void Store(Vector vector, void* to) {
  std::memcpy(to, &vector, sizeof(vector));
}

constexpr int kMantissaBits = 23;
constexpr int32_t kMantissa = (1 << kMantissaBits) - 1;
constexpr int32_t kSqrt2 = std::bit_cast<int32_t>(std::numbers::sqrt2_v<float>) & kMantissa;

// Limits of words, of 30 bits and a sign: |S| is below the first, N is at most the second. CodeOf
// relies on both.
constexpr int64_t kMostSum = 1 << 19;
constexpr int64_t kMostWeight = (1 << 11) - 1;
static_assert(kMostSum * (kMostWeight + 1) <= 1 << 30);

// With smaller codes a mean's rounding to a whole number of units of 2^-44 matters.
constexpr int kLeastCode = 56;

// Means whose mantissa is within 2^-kNearBits of that of a bound, 1 or sqrt 2, are undecided; below
// 1 that is 2^-13 of the mean. A bound differs from 2^(-l/2) of the first one by less: the rounding
// of B is below 2^-14 of it, that of the least mean 2^-15, and floats are rounded by 2^-22.
constexpr int kNearBits = 12;
constexpr int32_t kNear = 1 << (kMantissaBits - kNearBits);

// Whether the mantissa is `of` or differs by less than kNear. Requires a multiple of 2 kNear where
// it wraps around.
Ints IsNear(Ints mantissa, int32_t of) {
  return ((mantissa - of + kNear) & (kMantissa - (2 * kNear - 1))) == 0;
}

}  // namespace

SparseAccumulator::SparseAccumulator(const MeanRule& rule)
    : weights_(rule.weights),
      // The weight of who sent a position is at most that of all.
      least_divisor_(rule.divisor == Divisor::kAll ? rule.weights : rule.least_senders),
      rounding_(rule.weights),
      sums_(rule) {}

uint32_t SparseAccumulator::Combine(const BlockExtent& extent, absl::Span<const SparseSent> sent,
                                    DeltaBlock* block) {
  const std::optional<Form> form = FormOf(sent);
  if (!form.has_value()) {
    const DeltaMeans& means = MeansOf(extent, sent);
    RoundBlock(means, 0, block);
    return static_cast<uint32_t>(means.values.size());
  }
  if (Add(extent, sent, *form))
    TakeMarked();
  else
    TakeAll();
  const int code = CodeOf(*form, MakeMeans(*form));
  MakeLevels(*form, code);
  return MakeBlock(*form, code, block);
}

std::optional<SparseAccumulator::Form> SparseAccumulator::FormOf(
    absl::Span<const SparseSent> sent) const {
  Form form = {.unit_bits = Exponent(kScaleCodes - 1),
               .weight_bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(weights_)))};
  for (const SparseSent& of : sent) form.unit_bits = std::min(form.unit_bits, Exponent(of.code));
  int64_t largest = 0;  // at most 2^19 * 15 * 2^31
  for (const SparseSent& of : sent) largest += of.weight * (ScaleOf(of.code) >> form.unit_bits);
  // Because of the last condition only a sum of 0 has a mean that rounds to 0, and CodeOf may round
  // means up.
  const bool fits =
      largest < kMostSum && weights_ <= kMostWeight && weights_ <= int64_t{2} << form.unit_bits;
  return fits ? std::optional(form) : std::nullopt;
}

bool SparseAccumulator::Add(const BlockExtent& extent, absl::Span<const SparseSent> sent,
                            const Form& form) {
  size_t entries = 0;
  for (const SparseSent& of : sent) entries += of.entries.size();
  const bool whole = extent.Contains(kBlockElements - 1);
  const bool mark = !whole || entries <= kMostMarked;
  for (const SparseSent& of : sent) {
    const auto sum =
        static_cast<int32_t>(of.weight * (ScaleOf(of.code) >> form.unit_bits) << form.weight_bits);
    const std::array<int32_t, 2> add = {of.weight + sum, of.weight - sum};
    if (!mark) {
      for (const uint16_t entry : of.entries)
        words_[entry % kBlockElements] += add[entry / kBlockElements];
      continue;
    }
    for (const uint16_t entry : of.entries) {
      const uint32_t position = entry % kBlockElements;
      // A block with fewer than K elements inside its tensor fills its record with others.
      if (!whole && !extent.Contains(position)) continue;
      words_[position] += add[entry / kBlockElements];
      marks_[position / 64] |= uint64_t{1} << (position % 64);
    }
  }
  return mark;
}

void SparseAccumulator::TakeAll() {
  uint32_t count = 0;
  for (uint32_t position = 0; position < kBlockElements; ++position) {
    const int32_t word = words_[position];
    taken_[count] = word;
    positions_[count] = static_cast<uint16_t>(position);
    count += word != 0 ? 1 : 0;
  }
  words_.fill(0);
  count_ = count;
}

void SparseAccumulator::TakeMarked() {
  uint32_t count = 0;
  for (uint32_t i = 0; i < marks_.size(); ++i) {
    for (uint64_t bits = std::exchange(marks_[i], 0); bits != 0; bits &= bits - 1) {
      const auto position = static_cast<uint16_t>(i * 64 + std::countr_zero(bits));
      taken_[count] = std::exchange(words_[position], 0);
      positions_[count++] = position;
    }
  }
  count_ = count;
}

int64_t SparseAccumulator::MeanOf(const Form& form, uint32_t i) const {
  const int64_t sum = std::abs(int64_t{taken_[i]} >> form.weight_bits);
  const int64_t weight = taken_[i] & ((1 << form.weight_bits) - 1);
  return rounding_.Mean(sum << form.unit_bits, std::max(weight, least_divisor_));
}

float SparseAccumulator::MakeMeans(const Form& form) {
  // What fills the last vector has a sum of 0 and a divisor that is not.
  const size_t end = (count_ + kLanes - 1) / kLanes * kLanes;
  std::fill(taken_.begin() + count_, taken_.begin() + end, 1);
  const Ints weight_mask = Ints{} + ((1 << form.weight_bits) - 1);
  const Floats least = Floats{} + static_cast<float>(least_divisor_);
  Floats largest = {};
  for (size_t i = 0; i < end; i += kLanes) {
    const Ints words = Load<Ints>(&taken_[i]);
    const Ints sums = words >> form.weight_bits, sign = sums >> 31;
    const Floats weights = __builtin_convertvector(words & weight_mask, Floats);
    const Floats divisors = weights > least ? weights : least;
    const Floats means = __builtin_convertvector((sums ^ sign) - sign, Floats) / divisors;
    largest = means > largest ? means : largest;
    Store(means, &means_[i]);
  }
  return std::max(std::max(largest[0], largest[1]), std::max(largest[2], largest[3]));
}

int SparseAccumulator::CodeOf(const Form& form, float largest) const {
  // x = |S| / D in units of 2^-44 is M(c), which a float has, or it is above M(c) by 2^-19 of it or
  // more, because |S| and 15 D are at most 2^19: so the float is not on the other side. It is also
  // above by a half or more, which rounds up as ceil does: by 2^unit_bits / D, which FormOf limits,
  // or, if M(c) is no multiple of the unit, by 2^14 / D.
  const double mean = double{largest} * static_cast<double>(int64_t{1} << form.unit_bits);
  const int code = CoveringScale(static_cast<int64_t>(std::ceil(mean)));
  if (code >= kLeastCode) return code;
  int64_t rounded = 0;
  for (uint32_t i = 0; i < count_; ++i) rounded = std::max(rounded, MeanOf(form, i));
  return CoveringScale(rounded);
}

void SparseAccumulator::MakeLevels(const Form& form, int code) {
  if (code < kLeastCode) {
    std::fill_n(levels_.begin(), count_, kUndecided);
    return;
  }
  // Level l has means from first * 2^(-l/2), about: the exponent says it, and whether the mantissa
  // is sqrt 2 or more.
  const LevelBounds bounds(code);
  const double first = static_cast<double>(2 * bounds.Least(0) - 1) /
                       static_cast<double>(int64_t{2} << form.unit_bits);
  const Floats scale = Floats{} + static_cast<float>(1 / first);
  for (size_t i = 0; i < count_; i += kLanes) {
    const Floats scaled = Load<Floats>(&means_[i]) * scale;
    const Ints bits = std::bit_cast<Ints>(scaled), mantissa = bits & kMantissa;
    const Ints levels = 2 * (127 - (bits >> kMantissaBits)) + (mantissa >= kSqrt2);
    const Ints near = IsNear(mantissa, 0) | IsNear(mantissa, kSqrt2);
    Store(levels + (near & kUndecided), &levels_[i]);
  }
}

uint32_t SparseAccumulator::MakeBlock(const Form& form, int code, DeltaBlock* block) const {
  const LevelBounds bounds(code);
  uint32_t kept = 0, not_zero = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    int32_t level = levels_[i];
    if (level >= kUndecided) [[unlikely]]
      level = bounds.LevelOf(MeanOf(form, i));
    const int32_t sum = taken_[i] >> form.weight_bits;
    block->positions[kept] = positions_[i];
    block->signs[kept] = static_cast<int8_t>(sum >> 31 | 1);
    block->levels[kept] = static_cast<uint8_t>(level);
    // Too small for the lowest level: stays in the error buffers, as if it had not been sent.
    kept += level < kLevels ? 1 : 0;
    not_zero += sum != 0 ? 1 : 0;
  }
  block->code = static_cast<uint8_t>(code);
  block->count = kept;
  return not_zero;
}

const DeltaMeans& SparseAccumulator::MeansOf(const BlockExtent& extent,
                                             absl::Span<const SparseSent> sent) {
  for (const SparseSent& of : sent) sums_.Add(extent, of);
  means_of_block_.Clear();
  sums_.EmitBlock(&means_of_block_);
  return means_of_block_;
}

}  // namespace distro
