// Checks and converts the parameters of a deltas round (v1.DeltaParameters). Pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/layout/layout.h"
#include "distro/v1/round.pb.h"

namespace distro {

// Bit i (byte i / 8, value 1 << i % 8) is bits[i]; unused bits are 0.
std::string ToBitmap(const std::vector<bool>& bits);

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
