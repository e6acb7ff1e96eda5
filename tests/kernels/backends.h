// Shared by the tests of kernels/: every backend that this machine runs, and arrays that detect
// reads and writes outside their bounds.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/random.h"
#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/device.h"
#include "tests/kernels/emulated_cuda.h"
#include "tests/kernels/waiting_backend.h"

namespace distro::testing {

struct BackendCase {
  std::string name;
  std::function<std::unique_ptr<WaitingBackend>()> make;
};
inline std::ostream& operator<<(std::ostream& out, const BackendCase& c) { return out << c.name; }

// The GPU's backend, or nullptr if this build or machine has none. Its tests are then skipped by
// name.
std::unique_ptr<WaitingBackend> CudaOnThisMachine();
std::unique_ptr<cuda::Gpu> GpuOnThisMachine();

inline std::unique_ptr<WaitingBackend> WaitingReference() {
  return std::make_unique<WaitingBackend>(MakeReferenceBackend());
}
// The reference, each vector width that this CPU has, the GPU's code run on the CPU, and the GPU.
inline std::vector<BackendCase> AllBackends() {
  std::vector<BackendCase> cases = {{"reference", WaitingReference}};
  for (const VectorKernels& kernels : SupportedVectorKernels()) {
    cases.push_back({kernels.name, [kernels] {
                       return std::make_unique<WaitingBackend>(MakeVectorBackend(kernels));
                     }});
  }
  cases.push_back({"cuda_emulated", [] { return MakeEmulatedCudaBackend(); }});
  cases.push_back({"cuda", CudaOnThisMachine});
  return cases;
}

class BackendTest : public ::testing::TestWithParam<BackendCase> {
 protected:
  void SetUp() override {
    if (backend_ == nullptr) GTEST_SKIP() << "needs a GPU, and a build with DISTRO_CUDA";
  }
  const std::unique_ptr<WaitingBackend> backend_ = GetParam().make();
  const std::unique_ptr<WaitingBackend> reference_ = WaitingReference();
};
inline std::string BackendName(const ::testing::TestParamInfo<BackendCase>& info) {
  return info.param.name;
}

inline bool SameBits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}
inline std::vector<uint32_t> Bits(absl::Span<const float> x) {
  std::vector<uint32_t> bits;
  for (float value : x) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

// The content is in the host's part; CopyIn takes it to the device's.
template <typename T>
TwinArray<T> TwinOf(Device* device, const std::vector<T>& content) {
  TwinArray<T> twin(device);
  EXPECT_TRUE(twin.Resize(content.size()).ok());
  std::copy(content.begin(), content.end(), twin.host().begin());
  return twin;
}

// Uniform in [-1, 1).
inline float RandomFloat(uint64_t seed, uint64_t i) {
  return static_cast<float>(static_cast<double>(static_cast<int64_t>(SplitMix64(seed, i))) *
                            0x1p-63);
}
inline std::vector<float> RandomFloats(uint64_t seed, int64_t count) {
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(RandomFloat(seed, i));
  return out;
}

// An unaligned f32 array surrounded by NaN: a read outside poisons results, a write outside makes
// Intact() false.
class GuardedFloats {
 public:
  explicit GuardedFloats(const std::vector<float>& content)
      : size_(content.size()), all_(content.size() + 2 * kMargin + 1, Guard()) {
    std::copy(content.begin(), content.end(), all_.begin() + kMargin + 1);
  }
  absl::Span<float> span() { return absl::MakeSpan(all_).subspan(kMargin + 1, size_); }
  bool Intact() const {
    for (size_t i = 0; i < all_.size(); ++i) {
      const bool inside = i > kMargin && i <= kMargin + size_;
      if (!inside && !SameBits(all_[i], Guard())) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kMargin = 4160;  // more than a block
  static float Guard() { return std::bit_cast<float>(0x7FC0DEAD); }
  size_t size_;
  std::vector<float> all_;
};

struct ShapeCase {
  MatrixShape matrix;
  BlockRange blocks;
};
inline ShapeCase Matrix(int64_t rows, int64_t cols) {
  const MatrixShape matrix = {.rows = rows, .cols = cols, .elements = rows * cols};
  return {matrix, {.first = 0, .count = matrix.Blocks()}};
}
inline ShapeCase Vector(int64_t n) {
  const MatrixShape matrix = {.rows = (n + 63) / 64, .cols = 64, .elements = n};
  return {matrix, {.first = 0, .count = matrix.Blocks()}};
}
inline ShapeCase Part(ShapeCase shape, int64_t first, int64_t count) {
  return {shape.matrix, {.first = first, .count = count}};
}
// One block, sides that 64 does not divide, 1-D tails, ranges from the middle.
inline std::vector<ShapeCase> Shapes() {
  return {Matrix(64, 64),
          Matrix(1, 1),
          Matrix(1, 64),
          Matrix(64, 1),
          Matrix(65, 63),
          Matrix(63, 130),
          Matrix(128, 192),
          Matrix(200, 150),
          Vector(1),
          Vector(63),
          Vector(64),
          Vector(65),
          Vector(130),
          Vector(4095),
          Vector(4096),
          Vector(4097),
          Vector(9000),
          Part(Matrix(200, 150), 5, 4),
          Part(Matrix(200, 150), 11, 1),
          Part(Vector(9000), 1, 2),
          Part(Matrix(128, 192), 2, 0)};
}
inline std::string Describe(const ShapeCase& shape) {
  return std::to_string(shape.matrix.rows) + "x" + std::to_string(shape.matrix.cols) + " of " +
         std::to_string(shape.matrix.elements) + ", blocks " + std::to_string(shape.blocks.first) +
         "+" + std::to_string(shape.blocks.count);
}

// Whether element i of the array lies in a block of the range, by the definition in
// docs/algorithm.md.
inline bool InRange(const ShapeCase& shape, int64_t i) {
  const int64_t across = (shape.matrix.cols + 63) / 64;
  const int64_t block = i / shape.matrix.cols / 64 * across + i % shape.matrix.cols / 64;
  return block >= shape.blocks.first && block < shape.blocks.first + shape.blocks.count;
}
// The same array with `filler` outside the range.
inline std::vector<float> OnlyInRange(const ShapeCase& shape, std::vector<float> x, float filler) {
  for (size_t i = 0; i < x.size(); ++i) {
    if (!InRange(shape, static_cast<int64_t>(i))) x[i] = filler;
  }
  return x;
}
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline double Norm(absl::Span<const float> x) {
  double sum = 0;
  for (float value : x) sum += double{value} * value;
  return std::sqrt(sum);
}

}  // namespace distro::testing
