// Whether parameters are numbers with which a run can begin. Pure.
#pragma once

#include "absl/status/status.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"

namespace distro {

// InvalidArgument names the first element that is not finite: its tensor, its place in the tensor's
// shape, and the value. Requires tensors of `layout`.
absl::Status CheckFinite(const Layout& layout, const TensorBuffer& tensors);

}  // namespace distro
