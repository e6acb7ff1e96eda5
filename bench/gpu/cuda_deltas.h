// Measures the operations of a worker and a replica of the deltas method on a GPU, over all tensors
// of a model, sent as elements and as DCT.
#pragma once

#include "bench/gpu/timed_kernels.h"
#include "common/model/layout/layout.h"

namespace distro::bench {

// [layout.elements()] on the device, tensor after tensor; their content is lost.
struct DeltaArrays {
  float* begin;
  float* x;
  float* error;
};

// Reports an operation a line.
void TimeDeltas(const Layout& layout, const DeltaArrays& arrays, Timer* timer);

}  // namespace distro::bench
