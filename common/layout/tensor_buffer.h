// One f32 array a tensor of a manifest, each 64-byte aligned inside a single allocation:
// parameters, momentum, gradients, the lookahead copy. Starts at zero. Movable; the spans stay
// valid when it moves.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/layout/layout.h"

namespace distro {

class TensorBuffer {
 public:
  explicit TensorBuffer(const Layout& layout);

  int tensors() const { return static_cast<int>(sizes_.size()); }
  // f32 [elements of tensor i], row-major, without padding.
  absl::Span<float> tensor(int i) { return {data_.get() + offsets_[i], sizes_[i]}; }
  absl::Span<const float> tensor(int i) const { return {data_.get() + offsets_[i], sizes_[i]}; }

  // Sets every element to +0.
  void Clear();

 private:
  struct Free {
    void operator()(float* data) const;
  };
  std::vector<size_t> offsets_;
  std::vector<size_t> sizes_;
  size_t floats_ = 0;
  std::unique_ptr<float[], Free> data_;
};

// The tensors of a manifest where they lie in several places, such as the memory of several ranks:
// [tensors], of each the pieces that follow each other and together are the tensor; borrowed.
using TensorPieces = std::vector<std::vector<absl::Span<const float>>>;
TensorPieces PiecesOf(const TensorBuffer& buffer);

}  // namespace distro
