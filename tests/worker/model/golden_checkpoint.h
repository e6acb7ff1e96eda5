// Checkpoints of the golden data, and comparisons with what transformers computed of them.
#pragma once

#include <memory>
#include <string>

#include "absl/types/span.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"
#include "worker/model/model.h"

namespace distro::worker::testing {

// A checkpoint, opened and ready to compute; Torch runs with one thread.
struct GoldenCheckpoint {
  // Of a folder below GoldenDir(), with another config.json if one is given. Aborts when it does
  // not make a model.
  explicit GoldenCheckpoint(const std::string& folder, const std::string& config_json = "");

  std::unique_ptr<Layout> layout;
  std::unique_ptr<TensorBuffer> parameters;
  std::unique_ptr<Model> model;
};

// EXPECTs the same logits, each within 2e-5.
void ExpectLogits(const GoldenCheckpoint& checkpoint, const TokenBatch& batch,
                  absl::Span<const float> expected);

// EXPECTs the same loss within 1e-5, and the gradients of a file below GoldenDir(): all tensors,
// each within 1e-5 of its largest element.
void ExpectGradients(const GoldenCheckpoint& checkpoint, const TokenBatch& batch, float loss,
                     const std::string& gradients);

}  // namespace distro::worker::testing
