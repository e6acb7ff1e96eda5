// The arithmetic of applying deltas, in a source file of its own: callers open the floating-point
// environment that it is done in (kernels/cpu/exact.h says why the two are apart).
#pragma once

#include <array>
#include <cstdint>

#include "common/layout/matrix.h"
#include "common/update/delta_update.h"
#include "common/update/scale.h"

namespace distro::exact {

using Steps = std::array<std::array<float, kLevels>, kScaleCodes>;

void MakeSteps(float alpha, Steps* steps);

// w of docs/algorithm.md, "Every replica": what a unit of u means in a block of this code.
float FrequencyStep(float alpha, int code, int shift);

// Of one block, whose top left element is parameters[0] and whose rows are `stride` apart.
void ApplyBlock(const DeltaResult& result, int64_t block, const Steps& steps, int64_t stride,
                float* parameters);

}  // namespace distro::exact
