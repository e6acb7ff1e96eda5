#include "worker/optimizer/steps_done.h"

#include <algorithm>
#include <functional>

namespace distro::worker {

void StepsDone(const RunSpans& parameters, const RunSpans& copy, const RunSpans& done) {
  for (size_t i = 0; i < copy.size(); ++i)
    std::ranges::transform(copy[i], parameters[i], done[i].begin(), std::minus<float>());
}

void ScaleSteps(float scale, const RunSpans& parameters, const RunSpans& copy) {
  const auto scaled = [scale](float to, float from) { return from + scale * (to - from); };
  for (size_t i = 0; i < copy.size(); ++i)
    std::ranges::transform(copy[i], parameters[i], copy[i].begin(), scaled);
}

}  // namespace distro::worker
