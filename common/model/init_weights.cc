#include "common/model/init_weights.h"

#include <algorithm>

#include "common/base/checksum.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"

namespace distro {
namespace {

constexpr int kMeanOfSum = 12 * 65535 / 2;

constexpr int SumOfParts(uint64_t word) {
  return static_cast<int>((word & 0xFFFF) + (word >> 16 & 0xFFFF) + (word >> 32 & 0xFFFF) +
                          (word >> 48));
}

// Approximately normal, in units of 2^-16 standard deviations.
constexpr int Normal(uint64_t stream, uint64_t i) {
  return SumOfParts(SplitMix64(stream, 3 * i)) + SumOfParts(SplitMix64(stream, 3 * i + 1)) +
         SumOfParts(SplitMix64(stream, 3 * i + 2)) - kMeanOfSum;
}

void FillNormal(uint64_t stream, float deviation, absl::Span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(Normal(stream, i)) * 0x1p-16f * deviation;
  }
}

}  // namespace

void FillInitial(absl::string_view name, const InitialValues& initial, uint64_t seed,
                 absl::Span<float> out) {
  if (initial.deviation == 0) {
    std::fill(out.begin(), out.end(), initial.constant);
  } else {
    FillNormal(SplitMix64(seed, Xxh3(name)), initial.deviation, out);
  }
}

absl::Status InitWeights(const Architecture& model, const Layout& layout, uint64_t seed,
                         TensorBuffer* out) {
  DISTRO_ASSIGN_OR_RETURN(const Manifest expected, Manifest::Create(model.Tensors()));
  DISTRO_RETURN_IF_ERROR(CheckSameTensors(expected, layout.manifest()));
  for (int i = 0; i < out->tensors(); ++i) {
    const TensorSpec& tensor = layout.manifest().tensors()[i];
    FillInitial(tensor.name, model.Initial(tensor), seed, out->tensor(i));
  }
  return absl::OkStatus();
}

}  // namespace distro
