// Blocks of several tensors for one launch. The table is a parameter of the kernel, so it needs no
// memory of the device and no copy, and pointers may change from call to call.
#pragma once

#include <cstdint>

namespace distro::cuda {

inline constexpr int kTableTensors = 48;  // CUDA promises 4096 bytes of parameters

// A Tensor has `blocks`, a BlockRange.
template <typename Tensor>
struct TensorTable {
  int count = 0;
  Tensor tensors[kTableTensors] = {};
  int64_t ends[kTableTensors] = {};  // the number of blocks up to each tensor, with its own

  constexpr int64_t Blocks() const { return count == 0 ? 0 : ends[count - 1]; }
  constexpr void Add(const Tensor& tensor) {
    ends[count] = Blocks() + tensor.blocks.count;
    tensors[count++] = tensor;
  }
};

// Calls f(tensor, block) for every `step`-th block of the table from `first` on; `block` counts
// from tensor.blocks.first.
template <typename Tensor, typename F>
constexpr void EachBlock(const TensorTable<Tensor>& table, int64_t first, int64_t step,
                         const F& f) {
  int number = 0;
  for (int64_t at = first; at < table.Blocks(); at += step) {
    while (at >= table.ends[number]) ++number;
    const Tensor& tensor = table.tensors[number];
    f(tensor, at - (table.ends[number] - tensor.blocks.count));
  }
}

}  // namespace distro::cuda
