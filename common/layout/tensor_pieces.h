// The tensors of a manifest where they lie in several places, such as the memory of several ranks.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "common/layout/tensor_buffer.h"

namespace distro {

// [tensors], of each the pieces that follow each other and together are the tensor; borrowed.
using TensorPieces = std::vector<std::vector<absl::Span<const float>>>;

inline TensorPieces PiecesOf(const TensorBuffer& buffer) {
  TensorPieces pieces;
  for (int i = 0; i < buffer.tensors(); ++i) pieces.push_back({buffer.tensor(i)});
  return pieces;
}

}  // namespace distro
