// Converts the parameters of a round of deltas (v1.DeltaParameters) for code. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/layout/layout.h"
#include "distro/v1/round.pb.h"

namespace distro {

// Bit i (byte i / 8, value 1 << i % 8) is bits[i]; unused bits are 0.
std::string ToBitmap(const std::vector<bool>& bits);

// Rates finite and not negative, 1 to 1000 of them; outer rate 0 or at least 2^-82, at most 2;
// error decay 0 to below 1; a cap a tensor; a bitmap of the tensors. InvalidArgument names the
// field.
absl::Status CheckDeltaParameters(const v1::DeltaParameters& deltas, const Layout& layout);

// Of parameters that CheckDeltaParameters took.
std::vector<float> InnerRates(const v1::DeltaParameters& deltas);
float OuterRate(const v1::DeltaParameters& deltas);
// Whether the tensor's blocks travel as their DCT; of all [tensors].
bool IsAsDct(const v1::DeltaParameters& deltas, int tensor);
std::vector<bool> AsDct(const v1::DeltaParameters& deltas, const Layout& layout);

}  // namespace distro
