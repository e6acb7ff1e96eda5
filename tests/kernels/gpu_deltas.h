// For tests: the deltas method's operations on a GPU as functions of host arrays, and the same on
// the CPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/deltas_compress.h"
#include "tests/kernels/backends.h"

namespace distro::testing {

inline constexpr float kBeta = 0.8f;
inline constexpr uint16_t kGuardPosition = 0xABCD;
inline constexpr int8_t kGuardSign = 77;
inline constexpr uint8_t kGuardCode = 211;

// A device array that starts an odd number of elements into its memory, with guards on both sides.
template <typename T>
class Guarded {
 public:
  Guarded(cuda::Gpu* gpu, const std::vector<T>& content, T guard) : guard_(guard), twin_(gpu) {
    EXPECT_TRUE(twin_.Resize(content.size() + 2 * kMargin).ok());
    std::fill(twin_.host().begin(), twin_.host().end(), guard);
    std::copy(content.begin(), content.end(), twin_.host().begin() + kMargin);
    twin_.CopyIn();
  }
  T* device() { return twin_.device().data() + kMargin; }
  void CopyOut() { twin_.CopyOut(); }
  // After CopyOut and Finish.
  std::vector<T> content() const {
    return {twin_.host().begin() + kMargin, twin_.host().end() - kMargin};
  }
  bool Intact() const {
    const auto is_guard = [&](T x) { return x == guard_ || (x != x && guard_ != guard_); };
    return std::all_of(twin_.host().begin(), twin_.host().begin() + kMargin, is_guard) &&
           std::all_of(twin_.host().end() - kMargin, twin_.host().end(), is_guard);
  }

 private:
  static constexpr int kMargin = 4161;  // more than a block, and odd
  const T guard_;
  TwinArray<T> twin_;
};

// A tensor of a worker at the end of a round.
struct Round {
  std::vector<float> begin, x, error;
};
inline Round RandomRound(const ShapeCase& shape, uint64_t seed) {
  const int64_t n = shape.matrix.elements;
  Round round = {RandomFloats(seed, n), RandomFloats(seed + 1, n), RandomFloats(seed + 2, n)};
  for (int64_t i = 0; i < n; ++i) {
    for (auto* array : {&round.begin, &round.x, &round.error})
      (*array)[i] = std::ldexp((*array)[i], -10 - static_cast<int>(i % 13));
    if (i % 7 == 0) {  // ties
      round.begin[i] = round.begin[i / 2];
      round.x[i] = round.x[i / 2];
      round.error[i] = round.error[i / 2];
    }
  }
  return round;
}

struct CompressedDeltas {
  std::vector<float> error;
  DeltaUpdate update;
};
inline void ExpectSame(const CompressedDeltas& got, const CompressedDeltas& want) {
  EXPECT_EQ(Bits(got.error), Bits(want.error));
  EXPECT_EQ(got.update, want.update);
}

// The records of the range's blocks.
inline DeltaUpdate PartOf(const DeltaUpdate& whole, BlockRange blocks) {
  const auto part = [](const auto& all, int64_t first, int64_t count) {
    return std::decay_t<decltype(all)>(all.begin() + first, all.begin() + first + count);
  };
  const int64_t k = whole.k;
  return {.k = whole.k,
          .positions = part(whole.positions, blocks.first * k, blocks.count * k),
          .signs = part(whole.signs, blocks.first * k, blocks.count * k),
          .codes = part(whole.codes, blocks.first, blocks.count)};
}

// Computed by the CPU's functions; elements of other blocks do not change.
inline CompressedDeltas CompressOnCpu(const ShapeCase& shape, const Round& round, float beta, int k,
                                      uint8_t cap) {
  CompressedDeltas out{.error = round.error,
                       .update = {.k = k, .positions = {}, .signs = {}, .codes = {}}};
  std::vector<float> formed = round.error;
  FormDelta(beta, round.begin, round.x, absl::MakeSpan(formed));
  AppendLargest(shape.matrix, formed, cap, &out.update);
  for (size_t i = 0; i < formed.size(); ++i) {
    if (InRange(shape, static_cast<int64_t>(i))) out.error[i] = formed[i];
  }
  out.update = PartOf(out.update, shape.blocks);
  return out;
}

struct ReturnedDeltas {
  std::vector<float> error;
  uint64_t count;
};

class GpuDeltas {
 public:
  explicit GpuDeltas(std::unique_ptr<cuda::Gpu> gpu) : gpu_(std::move(gpu)) {}
  // If false, no other function may be called.
  bool exists() const { return gpu_ != nullptr; }

  CompressedDeltas Compress(const ShapeCase& shape, const Round& round, float beta, int k,
                            uint8_t cap, bool as_dct) {
    Guarded<float> begin = Floats(round.begin), x = Floats(round.x), error = Floats(round.error);
    const int64_t blocks = shape.blocks.count;
    const std::vector<uint16_t> no_positions(blocks * k);
    Guarded<uint16_t> positions(gpu_.get(), no_positions, kGuardPosition);
    Guarded<int8_t> signs(gpu_.get(), std::vector<int8_t>(blocks * k), kGuardSign);
    Guarded<uint8_t> codes(gpu_.get(), std::vector<uint8_t>(blocks), kGuardCode);
    gpu_->CompressDeltas({.matrix = shape.matrix,
                          .blocks = shape.blocks,
                          .beta = beta,
                          .k = k,
                          .cap = cap,
                          .as_dct = as_dct,
                          .begin = begin.device(),
                          .x = x.device(),
                          .error = error.device(),
                          .positions = positions.device(),
                          .signs = signs.device(),
                          .codes = codes.device()});
    error.CopyOut();
    positions.CopyOut();
    signs.CopyOut();
    codes.CopyOut();
    EXPECT_TRUE(gpu_->Finish().ok());
    EXPECT_TRUE(error.Intact() && positions.Intact() && signs.Intact() && codes.Intact());
    return {.error = error.content(),
            .update = {.k = k,
                       .positions = positions.content(),
                       .signs = signs.content(),
                       .codes = codes.content()}};
  }

  // `update` and `result` are of the range.
  ReturnedDeltas Feedback(const ShapeCase& shape, bool as_dct, const DeltaUpdate& update,
                          const DeltaResult& result, const std::vector<float>& e) {
    Guarded<float> error = Floats(e);
    Guarded<uint16_t> sent(gpu_.get(), update.positions, kGuardPosition);
    Guarded<int8_t> signs(gpu_.get(), update.signs, kGuardSign);
    Guarded<uint8_t> codes(gpu_.get(), update.codes, kGuardCode);
    std::vector<uint32_t> moved = result.offsets;  // need not start at 0
    for (uint32_t& offset : moved) offset += 1000;
    Guarded<uint32_t> offsets(gpu_.get(), moved, ~0u);
    Guarded<uint16_t> positions(gpu_.get(), result.positions, kGuardPosition);
    Guarded<uint64_t> returned(gpu_.get(), {5}, 0);
    gpu_->FeedbackDeltas({.matrix = shape.matrix,
                          .blocks = shape.blocks,
                          .as_dct = as_dct,
                          .sent = {.k = update.k,
                                   .positions = sent.device(),
                                   .signs = signs.device(),
                                   .codes = codes.device()},
                          .offsets = offsets.device(),
                          .positions = positions.device(),
                          .error = error.device(),
                          .returned = returned.device()});
    error.CopyOut();
    returned.CopyOut();
    EXPECT_TRUE(gpu_->Finish().ok());
    EXPECT_TRUE(error.Intact() && returned.Intact());
    return {.error = error.content(), .count = returned.content()[0] - 5};
  }

  bool IsFinite(const Round& round, float beta) {
    Guarded<float> begin = Floats(round.begin), x = Floats(round.x), error = Floats(round.error);
    Guarded<uint32_t> found(gpu_.get(), {0}, 0);
    gpu_->FindNotFinite(beta, begin.device(), x.device(), error.device(),
                        static_cast<int64_t>(round.error.size()), found.device());
    found.CopyOut();
    EXPECT_TRUE(gpu_->Finish().ok());
    EXPECT_TRUE(found.Intact());
    return found.content()[0] == 0;
  }

 private:
  Guarded<float> Floats(const std::vector<float>& content) {
    return Guarded<float>(gpu_.get(), content, kNan);
  }

  const std::unique_ptr<cuda::Gpu> gpu_;
};

// A result that lacks every third entry of the update's records and in which every second entry is
// from other workers. Every fifth block of either is empty.
inline DeltaResult SomeOf(const DeltaUpdate& update) {
  DeltaResult result;
  for (int64_t b = 0; b < update.blocks(); ++b) {
    std::vector<bool> there(kBlockElements);
    for (int i = 0; i < update.k && b % 5 != 3 && !update.empty(b); ++i) {
      if (i % 3 != 2) there[update.PositionsOf(b)[i]] = true;
      there[SplitMix64(b, i) % kBlockElements] = true;
    }
    for (int p = 0; p < kBlockElements; ++p) {
      if (there[p]) result.positions.push_back(static_cast<uint16_t>(p));
    }
    result.offsets.push_back(static_cast<uint32_t>(result.positions.size()));
  }
  result.signs.resize(result.positions.size());
  result.levels.resize(result.positions.size());
  result.codes.resize(update.blocks());
  return result;
}

// Compresses and feeds back one round on both, which must give the same bits. Returns the error
// buffer for the next round.
inline std::vector<float> ExpectSameRound(GpuDeltas& gpu, GpuDeltas& other, const ShapeCase& shape,
                                          const Round& round, bool as_dct, int k) {
  SCOPED_TRACE(Describe(shape) + (as_dct ? ", DCT, k " : ", k ") + std::to_string(k));
  const auto got = gpu.Compress(shape, round, kBeta, k, 200, as_dct);
  const auto want = other.Compress(shape, round, kBeta, k, 200, as_dct);
  ExpectSame(got, want);
  const DeltaResult result = SomeOf(want.update);
  const auto left = gpu.Feedback(shape, as_dct, want.update, result, want.error);
  const auto wanted = other.Feedback(shape, as_dct, want.update, result, want.error);
  EXPECT_EQ(Bits(left.error), Bits(wanted.error));
  EXPECT_EQ(left.count, wanted.count);
  return wanted.error;
}

struct GpuCase {
  std::string name;
  std::function<std::unique_ptr<cuda::Gpu>()> make;
};
inline std::ostream& operator<<(std::ostream& out, const GpuCase& c) { return out << c.name; }

// The emulated GPU, which does nothing before Finish, and the GPU of this machine.
inline std::vector<GpuCase> AllGpus() {
  return {{"cuda_emulated", [] { return MakeEmulatedGpu(); }}, {"cuda", GpuOnThisMachine}};
}
inline std::string GpuName(const ::testing::TestParamInfo<GpuCase>& info) {
  return info.param.name;
}

class GpuDeltasTest : public ::testing::TestWithParam<GpuCase> {
 protected:
  void SetUp() override {
    if (!gpu_.exists()) GTEST_SKIP() << "needs a GPU, and a build with DISTRO_CUDA";
  }
  GpuDeltas gpu_{GetParam().make()};
};

}  // namespace distro::testing
