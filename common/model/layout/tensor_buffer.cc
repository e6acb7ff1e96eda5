#include "common/model/layout/tensor_buffer.h"

#include <algorithm>
#include <new>

namespace distro {
namespace {

constexpr size_t kAlignmentBytes = 64;
constexpr size_t kAlignmentFloats = kAlignmentBytes / sizeof(float);

}  // namespace

void TensorBuffer::Free::operator()(float* data) const {
  ::operator delete[](data, std::align_val_t(kAlignmentBytes));
}

TensorBuffer::TensorBuffer(const Layout& layout) {
  for (const TensorLayout& tensor : layout.tensors()) {
    offsets_.push_back(floats_);
    sizes_.push_back(tensor.matrix.elements);
    floats_ +=
        (tensor.matrix.elements + kAlignmentFloats - 1) / kAlignmentFloats * kAlignmentFloats;
  }
  data_.reset(static_cast<float*>(
      ::operator new[](floats_ * sizeof(float), std::align_val_t(kAlignmentBytes))));
  Clear();
}

void TensorBuffer::Clear() { std::fill_n(data_.get(), floats_, 0.0f); }

TensorPieces PiecesOf(const TensorBuffer& buffer) {
  TensorPieces pieces;
  for (int i = 0; i < buffer.tensors(); ++i) pieces.push_back({buffer.tensor(i)});
  return pieces;
}

}  // namespace distro
