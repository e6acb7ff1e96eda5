// One f32 array for each tensor of a manifest, 64-byte aligned, in a single allocation: for
// parameters, momentum, gradients, the lookahead copy. Initially zero. Movable; spans stay valid.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/model/layout/layout.h"

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

// The tensors of a manifest when they are stored in several places, such as the memory of several
// ranks: for each tensor, consecutive pieces that together form it; borrowed.
using TensorPieces = std::vector<std::vector<absl::Span<const float>>>;
TensorPieces PiecesOf(const TensorBuffer& buffer);

}  // namespace distro
