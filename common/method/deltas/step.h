// Makes, checks and converts the parameters of a deltas round (v1.DeltaParameters). Pure functions.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/model/layout/layout.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"

namespace distro {

// Limits of outer_learning_rate, in run.json and in records. The least is large enough that its
// product with a unit is exact.
inline constexpr double kLeastOuterRate = 0x1p-82;
inline constexpr double kLargestOuterRate = 2;

// The rates of the local steps of a round [local_steps]. `config` is complete. `extension` as for
// LearningRate.
std::vector<float> LocalRates(const v1::RunConfig& config, RoundId round,
                              const v1::Extension* extension = nullptr);

// Checks that there are 1 to 1000 inner rates, finite and not negative; that the outer rate is 0 or
// in 2^-82..2, and the error decay at least 0 and below 1; and that there is a cap and a bit of the
// bitmap for each tensor. InvalidArgument names the field.
absl::Status CheckDeltaParameters(const v1::DeltaParameters& deltas, const Layout& layout);

// The inner rates of parameters accepted by CheckDeltaParameters.
std::vector<float> InnerRates(const v1::DeltaParameters& deltas);
float OuterRate(const v1::DeltaParameters& deltas);
// Whether the tensor is sent as DCT. AsDct: the same for all [tensors].
bool IsAsDct(const v1::DeltaParameters& deltas, int tensor);
std::vector<bool> AsDct(const v1::DeltaParameters& deltas, const Layout& layout);

}  // namespace distro
