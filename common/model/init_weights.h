// Random initial weights: the same seed gives the same bits on every machine, with every compiler
// and number of threads. Uses integers and exact arithmetic, without libm.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/model/architecture.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"

namespace distro {

// Fills the tensor `name` with its initial values.
//
// Element i of a tensor `name` with a deviation is float(n) * 2^-16 * deviation. n is the sum of
// the twelve 16-bit parts of SplitMix64(s, 3i), (s, 3i+1), (s, 3i+2), less its mean 393 210, with s
// = SplitMix64(seed, Xxh3(name)). That sum of twelve uniforms (Irwin-Hall) is close to normal: mean
// 0, variance 1 - 2^-32, skewness 0, kurtosis 2.9, at most 6 standard deviations. float(n) * 2^-16
// is exact, so only the last product is rounded.
void FillInitial(absl::string_view name, const InitialValues& initial, uint64_t seed,
                 absl::Span<float> out);

// Fills `out` with model.Initial()'s values, of the same distributions as in transformers (not the
// same bits). InvalidArgument: the layout is not that of model.Tensors(); names the tensor.
// Requires a buffer of `layout`.
absl::Status InitWeights(const Architecture& model, const Layout& layout, uint64_t seed,
                         TensorBuffer* out);

}  // namespace distro
