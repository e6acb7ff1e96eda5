// Every DeltaBackend as a worker uses it: the records of several tensors one after another, and
// feedback for a part of them. The CPU's must equal its functions; the others are compared with it.
#include "kernels/delta_backend.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_delta_backend.h"
#include "kernels/cuda/gpu_delta_backend.h"
#include "tests/kernels/gpu_deltas.h"

namespace distro {
namespace {

using testing::Bits;
using testing::kBeta;
using testing::Round;
using testing::ShapeCase;

struct BackendCase {
  std::string name;
  std::function<std::unique_ptr<Device>()> device;
  std::function<std::unique_ptr<DeltaBackend>(Device*)> backend;
};
std::ostream& operator<<(std::ostream& out, const BackendCase& c) { return out << c.name; }

std::vector<BackendCase> AllDeltaBackends() {
  std::vector<BackendCase> cases = {
      {"cpu", MakeHostDevice, [](Device*) { return MakeCpuDeltaBackend(); }}};
  for (const testing::GpuCase& gpu : testing::AllGpus()) {
    cases.push_back({gpu.name, gpu.make, [](Device* device) {
                       return cuda::MakeGpuDeltaBackend(static_cast<cuda::Gpu*>(device));
                     }});
  }
  return cases;
}

class DeltaBackendTest : public ::testing::TestWithParam<BackendCase> {
 protected:
  // An array of the device.
  class Elements {
   public:
    Elements(Device* device, const std::vector<float>& content) : device_(device), twin_(device) {
      EXPECT_TRUE(twin_.Resize(content.size()).ok());
      std::copy(content.begin(), content.end(), twin_.host().begin());
      twin_.CopyIn();
    }
    absl::Span<float> span() { return twin_.device(); }
    std::vector<float> Read() {
      twin_.CopyOut();
      EXPECT_TRUE(device_->Finish().ok());
      return {twin_.host().begin(), twin_.host().end()};
    }

   private:
    Device* const device_;
    TwinArray<float> twin_;
  };

  void SetUp() override {
    if (device_ == nullptr) GTEST_SKIP() << "needs a GPU, and a build with DISTRO_CUDA";
    backend_ = GetParam().backend(device_.get());
  }

  const std::unique_ptr<Device> device_ = GetParam().device();
  std::unique_ptr<DeltaBackend> backend_;
};
INSTANTIATE_TEST_SUITE_P(All, DeltaBackendTest, ::testing::ValuesIn(AllDeltaBackends()),
                         [](const auto& backend) { return backend.param.name; });

DeltaUpdate Empty(int k) { return {.k = k, .positions = {}, .signs = {}, .codes = {}}; }

TEST_P(DeltaBackendTest, RecordsFollowOneAnotherAndLeaveTheirOwnBuffers) {
  const std::vector<ShapeCase> shapes = {testing::Matrix(70, 130), testing::Vector(1),
                                         testing::Matrix(64, 64), testing::Vector(5000)};
  DeltaUpdate update = Empty(8), want = Empty(8);
  std::vector<Elements> errors;
  std::vector<std::vector<float>> wanted;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Round round = testing::RandomRound(shapes[i], 10 * i);
    Elements begin(device_.get(), round.begin), x(device_.get(), round.x);
    Elements& error = errors.emplace_back(device_.get(), round.error);
    EXPECT_TRUE(*backend_->IsFinite(kBeta, begin.span(), x.span(), error.span()));
    ASSERT_TRUE(backend_
                    ->Compress(shapes[i].matrix, false, {.beta = kBeta, .cap = 120}, begin.span(),
                               x.span(), error.span(), &update)
                    .ok());
    std::vector<float>& formed = wanted.emplace_back(round.error);
    FormDelta(kBeta, round.begin, round.x, absl::MakeSpan(formed));
    AppendLargest(shapes[i].matrix, formed, 120, &want);
  }
  EXPECT_EQ(update, want);
  const DeltaResult result = testing::SomeOf(want);
  int64_t first = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const int64_t blocks = shapes[i].matrix.Blocks();
    EXPECT_EQ(Bits(errors[i].Read()), Bits(wanted[i]));
    const BlockRange all_but_first = {.first = blocks > 1 ? 1 : 0,
                                      .count = blocks > 1 ? blocks - 1 : 1};
    const int64_t at = first + all_but_first.first;
    const int64_t returned = SubtractReturned(shapes[i].matrix, all_but_first, want, at, result, at,
                                              absl::MakeSpan(wanted[i]));
    EXPECT_EQ(*backend_->Feedback(shapes[i].matrix, false, all_but_first, update, at, result, at,
                                  errors[i].span()),
              returned);
    EXPECT_EQ(Bits(errors[i].Read()), Bits(wanted[i]));
    first += blocks;
  }
}

// The result includes everything that was sent: exactly the rest of each block remains.
TEST_P(DeltaBackendTest, FrequenciesThatComeBackLeaveTheBuffer) {
  const ShapeCase shape = testing::Matrix(128, 64);
  std::vector<float> x(shape.matrix.elements, 0.25f);  // of each block one frequency, 16
  Elements begin(device_.get(), std::vector<float>(x.size())), copy(device_.get(), x);
  Elements error(device_.get(), std::vector<float>(x.size()));
  DeltaUpdate update = Empty(1);
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(backend_
                    ->Compress(shape.matrix, true, {.beta = 1, .cap = 255}, begin.span(),
                               copy.span(), error.span(), &update)
                    .ok());
  }
  EXPECT_EQ(update.positions, std::vector<uint16_t>(4));
  EXPECT_EQ(update.signs, std::vector<int8_t>(4, -1));
  EXPECT_EQ(update.codes, std::vector<uint8_t>(4, 255)) << "M(255) is 0.47";
  const DeltaResult result = ResultOf(update);
  EXPECT_EQ(
      *backend_->Feedback(shape.matrix, true, shape.blocks, update, 2, result, 2, error.span()), 2);
  const double left = -2 * 0.25 + std::ldexp(static_cast<double>(kMaxScale), -44) / 64;
  for (const float e : error.Read()) ASSERT_NEAR(e, left, 1e-6);
}

TEST_P(DeltaBackendTest, WhatIsNotFiniteIsFound) {
  const ShapeCase shape = testing::Matrix(70, 130);
  const Round round = testing::RandomRound(shape, 3);
  Elements begin(device_.get(), round.begin), x(device_.get(), round.x);
  for (const size_t at : {size_t{0}, round.error.size() - 1}) {
    std::vector<float> e = round.error;
    e[at] = testing::kNan;
    Elements error(device_.get(), e);
    EXPECT_FALSE(*backend_->IsFinite(kBeta, begin.span(), x.span(), error.span()));
  }
  Elements error(device_.get(), round.error);
  EXPECT_TRUE(*backend_->IsFinite(kBeta, begin.span(), x.span(), error.span()));
}

}  // namespace
}  // namespace distro
