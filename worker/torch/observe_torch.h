// Includes Torch's observers of operators, for tests of what is copied. The only file that does.
//
// The layout of at::RecordFunction depends on NDEBUG, with which LibTorch is built.
#pragma once

#include "worker/torch/torch.h"

#ifdef NDEBUG
#include <ATen/record_function.h>
#else
#define NDEBUG
#include <ATen/record_function.h>
#undef NDEBUG
#endif
