// Random initial weights: the same bits from the same seed on every machine, compiler and number of
// threads, made from integers and exact arithmetic without libm.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/layout/layout.h"
#include "common/layout/tensor_buffer.h"
#include "common/model/architecture.h"

namespace distro {

// Fills the tensor `name` with its initial values.
//
// Element i of a tensor `name` with a deviation is float(n) * 2^-16 * deviation, where n is the sum
// of the twelve 16-bit parts of SplitMix64(s, 3i), (s, 3i+1), (s, 3i+2), s = SplitMix64(seed,
// Xxh3(name)), less its mean 393 210. That sum of twelve uniforms (Irwin-Hall) is close to normal:
// mean 0, variance 1 - 2^-32, skewness 0, kurtosis 2.9, none beyond 6 standard deviations.
// float(n) * 2^-16 is exact, so one rounding is all there is.
void FillInitial(absl::string_view name, const InitialValues& initial, uint64_t seed,
                 absl::Span<float> out);

// Fills `out` with what model.Initial() says, as transformers would in kind (not in bits).
// InvalidArgument: the layout is not that of model.Tensors(); names the tensor. Requires a buffer
// of `layout`.
absl::Status InitWeights(const Architecture& model, const Layout& layout, uint64_t seed,
                         TensorBuffer* out);

}  // namespace distro
