// Includes Torch's headers for libraries that Python loads with torch.ops.load_library: classes and
// functions that need neither Python's C API nor libtorch_python.
#pragma once

#include <torch/custom_class.h>
#include <torch/library.h>

#include "worker/torch/torch.h"
