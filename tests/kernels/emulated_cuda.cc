#include "tests/kernels/emulated_cuda.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/block_site.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/device_threads.cuh"
#include "tests/kernels/emulation/device.h"
#include "tests/kernels/emulation/group.h"

namespace distro::testing {
namespace {

// What the tests of single steps run.
void SelectKernel(const float* coefficients, int k, uint16_t* positions, float* values) {
  __shared__ cuda::CompressScratch scratch;
  const cuda::DeviceThreads threads;
  threads.Each([&](int row) {
    uint32_t& largest = scratch.select.row_maxima[row] = 0;
    for (int i = 0; i < kBlockSide; ++i) {
      const float value = coefficients[row * kBlockSide + i];
      scratch.tile.at[row * cuda::kTileRow + i] = value;
      largest = std::max(largest, cuda::Magnitude(value));
    }
    if (row == 0) cuda::ResetSelect(scratch.select);
  });
  cuda::SelectLargest(threads, scratch.tile, k, scratch.select, [&](int, int slot, int position) {
    positions[slot] = static_cast<uint16_t>(position);
    values[slot] = scratch.tile.at[cuda::IndexOf(position)];
  });
}

// Gives freed memory out again at once, while work that uses it may still be enqueued. New memory
// is NaN.
class EagerAllocator {
 public:
  explicit EagerAllocator(int device) : device_(device) {}
  ~EagerAllocator() {
    cuda::cudaSetDevice(device_);
    cuda::cudaDeviceReset();
  }

  void* Allocate(size_t bytes) {
    Block block{.memory = nullptr, .bytes = bytes};
    const auto fits = std::ranges::find_if(free_, [&](const Block& b) { return b.bytes >= bytes; });
    if (fits != free_.end()) {
      block = *fits;
      free_.erase(fits);
    } else if (cuda::cudaMalloc(&block.memory, bytes) != cuda::cudaSuccess) {
      cuda::cudaGetLastError();
      return nullptr;
    }
    used_.push_back(block);
    cuda::cudaMemsetAsync(block.memory, 0xFF, bytes, nullptr);
    return block.memory;
  }
  void Free(void* memory) {
    const auto block = std::ranges::find(used_, memory, &Block::memory);
    CheckShape(block != used_.end(), "memory that is not in use is freed");
    free_.push_back(*block);
    used_.erase(block);
  }

 private:
  struct Block {
    void* memory = nullptr;
    size_t bytes = 0;
  };

  const int device_;
  std::vector<Block> used_, free_;
};

// A new one, current.
int AddGpu(int multiprocessors) {
  const int device = EmulatedGpu::Add(multiprocessors).number();
  cuda::cudaSetDevice(device);
  return device;
}

}  // namespace

std::unique_ptr<cuda::Gpu> MakeEmulatedGpu(int multiprocessors) {
  const auto allocator = std::make_shared<EagerAllocator>(AddGpu(multiprocessors));
  return cuda::MakeGpu(
             nullptr, {.allocate = [allocator](size_t bytes) { return allocator->Allocate(bytes); },
                       .free = [allocator](void* memory) { allocator->Free(memory); }})
      .value();
}

std::unique_ptr<cuda::Gpu> MakeEmulatedGpuWithCudaMalloc() {
  AddGpu(/*multiprocessors=*/1);
  return cuda::MakeGpu(nullptr).value();
}

std::unique_ptr<WaitingBackend> MakeEmulatedCudaBackend(int multiprocessors) {
  std::unique_ptr<cuda::Gpu> gpu = MakeEmulatedGpu(multiprocessors);
  std::unique_ptr<Backend> backend = cuda::MakeGpuBackend(gpu.get());
  return std::make_unique<WaitingBackend>(std::move(backend), std::move(gpu));
}

void EmulatedInverseInteger(const BlockVotes& votes, int32_t* u) {
  const auto scratch = std::make_unique<cuda::ApplyScratch>();
  scratch->basis = cuda::MakeHalfBasisQ13();
  for (int i = 0; i < votes.count; ++i)
    scratch->entries[i] = cuda::EntryOf(votes.positions[i], votes.values[i]);
  for (int c = 0; c < kBlockSide; ++c) {
    cuda::ColumnSums sums;
    cuda::InverseColumn(*scratch, votes.count, votes.shift, c, sums);
    for (int r = 0; r < 32; ++r) {
      u[r * kBlockSide + c] = cuda::EvenSum(sums, r) + sums.odd[r];
      u[(63 - r) * kBlockSide + c] = cuda::EvenSum(sums, r) - sums.odd[r];
    }
  }
}

void EmulatedSelectLargest(const float* coefficients, int k, uint16_t* positions, float* values) {
  testing::RunKernel(1, cuda::kThreads, [=] { SelectKernel(coefficients, k, positions, values); });
}

void EmulatedForwardTransform(const float* x, float* c) {
  float samples[kBlockSide];
  std::copy_n(x, kBlockSide, samples);
  cuda::ForwardTransform(samples, [c](int f, float value) { c[f] = value; });
}

}  // namespace distro::testing
