// Includes Torch's headers: the only file that does, and the precompiled header of every target
// that calls distro_use_torch (cmake/DistroTorch.cmake). Used only by
// worker/{model,train,fsdp,node}.
//
// Torch reports errors by exceptions, which CatchTorch converts to statuses.
#pragma once

// LibTorch is built with NDEBUG, on which the layout of at::RecordFunction depends.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define NDEBUG
#include <ATen/Parallel.h>
#include <ATen/SDPBackend.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#pragma pop_macro("NDEBUG")

#include <exception>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace distro::worker {

// "what: message" without Torch's backtrace. ResourceExhausted: memory; Internal otherwise.
absl::Status TorchErrorToStatus(const std::exception& error, absl::string_view what);

// body(), which returns a Status or a StatusOr, with exceptions turned into a status.
template <typename Body>
auto CatchTorch(absl::string_view what, Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& error) {
    return TorchErrorToStatus(error, what);
  }
}

}  // namespace distro::worker
