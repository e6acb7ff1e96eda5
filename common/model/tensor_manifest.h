// A model as a list of tensors with their initial values. A run of `"workers": "python"` is made
// from it when there are no weights yet (docs/checkpoints.md, "A manifest of tensors").
//
//   {"format": "distro-tensors", "version": 1, "tensors": [
//     {"name": "wte.weight", "shape": [256, 64], "init": "normal", "std": 0.02},
//     {"name": "norm.weight", "shape": [64], "init": "ones"},
//     {"name": "norm.bias", "shape": [64], "init": "zeros"}]}
//
// Pure; thread-safe. The input may be untrusted.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/architecture.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/manifest.h"
#include "common/model/layout/tensor_buffer.h"

namespace distro {

inline constexpr uint64_t kMaxTensorManifestBytes = 16 << 20;

struct TensorManifest {
  Manifest manifest;
  std::vector<InitialValues> initial;  // [tensors], in the manifest's order
};

// InvalidArgument names the tensor and the key: not JSON, another version, a missing or unknown
// key, a value out of range, or tensors that Manifest::Create refuses.
absl::StatusOr<TensorManifest> ParseTensorManifest(absl::string_view json);

// Fills `out` like InitWeights. Requires a buffer of `layout`, whose manifest is that of `tensors`.
void InitTensors(const TensorManifest& tensors, uint64_t seed, TensorBuffer* out);

}  // namespace distro
