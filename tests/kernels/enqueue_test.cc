// Several operations between two waits give the same result as one at a time, on every CPU backend
// and on an emulated GPU that does nothing before Finish.
#include <functional>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/cuda_backend.h"
#include "tests/kernels/backends.h"

namespace distro {
namespace {

using testing::Describe;
using testing::RandomFloats;
using testing::ShapeCase;

struct DeviceCase {
  std::string name;
  std::function<std::unique_ptr<Device>()> device;
  std::function<std::unique_ptr<Backend>(Device*)> backend;
};

std::vector<DeviceCase> AllDevices() {
  std::vector<DeviceCase> cases = {
      {"reference", MakeHostDevice, [](Device*) { return MakeReferenceBackend(); }},
      {"cpu", MakeHostDevice, [](Device*) { return MakeCpuBackend(); }}};
  cases.push_back(
      {"cuda_emulated", [] { return testing::MakeEmulatedGpu(); },
       [](Device* device) { return cuda::MakeGpuBackend(static_cast<cuda::Gpu*>(device)); }});
  cases.push_back(
      {"cuda", [] { return testing::GpuOnThisMachine(); },
       [](Device* device) { return cuda::MakeGpuBackend(static_cast<cuda::Gpu*>(device)); }});
  return cases;
}

class EnqueueTest : public ::testing::TestWithParam<DeviceCase> {
 protected:
  void SetUp() override {
    if (device_ == nullptr) GTEST_SKIP() << "needs a GPU, and a build with DISTRO_CUDA";
    backend_ = GetParam().backend(device_.get());
  }
  template <typename T>
  TwinArray<T> Twin(const std::vector<T>& content) {
    TwinArray<T> twin = testing::TwinOf(device_.get(), content);
    twin.CopyIn();
    return twin;
  }

  const std::unique_ptr<Device> device_ = GetParam().device();
  const std::unique_ptr<testing::WaitingBackend> reference_ = testing::WaitingReference();
  std::unique_ptr<Backend> backend_;
};
std::string NameOf(const ::testing::TestParamInfo<DeviceCase>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Devices, EnqueueTest, ::testing::ValuesIn(AllDevices()), NameOf);

// Two votes a block: more than one operation between two waits, on the same words.
struct SomeVotes {
  explicit SomeVotes(int64_t blocks) {
    for (int64_t b = 0; b < blocks; ++b) {
      positions.insert(positions.end(), {static_cast<uint16_t>(b % 64), 700});
      values.insert(values.end(), {3, -2});
      offsets.push_back(static_cast<uint32_t>(positions.size()));
    }
  }
  VotesView view() const { return {offsets, positions, values}; }
  std::vector<uint32_t> offsets = {0};
  std::vector<uint16_t> positions;
  std::vector<int16_t> values;
};

TEST_P(EnqueueTest, ApplyAndHashOfSeveralRangesAreThereAfterFinish) {
  const ShapeCase shape = testing::Matrix(200, 150);
  std::vector<float> expected = RandomFloats(1, shape.matrix.elements);
  TwinArray<float> parameters = Twin(expected);
  TwinArray<uint64_t> words(device_.get());
  ASSERT_TRUE(words.Resize(2).ok());
  words.Fill(0);
  device_->Fill(words.device().data() + 1, 0xFF, sizeof(uint64_t));
  const SignApplyOptions options = {.eta = 0.1f, .eta_lambda = 0.01f};
  const int64_t half = shape.blocks.count / 2;
  const SomeVotes first(half), second(shape.blocks.count - half);
  TwinArray<uint32_t> offsets[] = {Twin(first.offsets), Twin(second.offsets)};
  TwinArray<uint16_t> positions[] = {Twin(first.positions), Twin(second.positions)};
  TwinArray<int16_t> values[] = {Twin(first.values), Twin(second.values)};
  for (int i = 0; i < 2; ++i) {
    const BlockRange blocks = {.first = i * half,
                               .count = i == 0 ? half : shape.blocks.count - half};
    backend_->ApplyVotes(shape.matrix, blocks, options,
                         {offsets[i].device(), positions[i].device(), values[i].device()},
                         parameters.device(),
                         reinterpret_cast<uint32_t*>(words.device().data() + 1));
    ASSERT_TRUE(reference_
                    ->ApplyVotes(shape.matrix, blocks, options, (i == 0 ? first : second).view(),
                                 absl::MakeSpan(expected))
                    .ok());
  }
  backend_->StateHash(5, parameters.device(), words.device().data());
  backend_->StateHash(99, parameters.device().subspan(0, 100), words.device().data());
  parameters.CopyOut();
  words.CopyOut();
  ASSERT_TRUE(device_->Finish().ok());
  EXPECT_EQ(testing::Bits(parameters.host()), testing::Bits(expected));
  EXPECT_EQ(words.host()[0],
            reference_->StateHash(5, expected) +
                reference_->StateHash(99, absl::MakeConstSpan(expected).subspan(0, 100)));
  EXPECT_EQ(static_cast<uint32_t>(words.host()[1]), ~uint32_t{0});
}

TEST_P(EnqueueTest, VotesThatBreakTheRulesAreTold) {
  const ShapeCase shape = testing::Matrix(64, 64);
  TwinArray<float> parameters = Twin(RandomFloats(1, shape.matrix.elements));
  TwinArray<uint32_t> offsets = Twin<uint32_t>({0, 2});
  TwinArray<uint16_t> positions = Twin<uint16_t>({7, 7});
  TwinArray<int16_t> values = Twin<int16_t>({1, 1});
  TwinArray<uint32_t> invalid(device_.get());
  ASSERT_TRUE(invalid.Resize(1).ok());
  invalid.Fill(0xFF);
  backend_->ApplyVotes(shape.matrix, shape.blocks, {.eta = 0.1f},
                       {offsets.device(), positions.device(), values.device()}, parameters.device(),
                       invalid.device().data());
  invalid.CopyOut();
  ASSERT_TRUE(device_->Finish().ok());
  EXPECT_NE(invalid.host()[0], ~uint32_t{0});
}

TEST_P(EnqueueTest, RowSumsAreThoseOfABackendThatWaits) {
  const std::unique_ptr<testing::WaitingBackend> waiting = GetParam().name.starts_with("cuda")
                                                               ? testing::MakeEmulatedCudaBackend()
                                                               : testing::WaitingReference();
  for (const ShapeCase& shape : {testing::Matrix(200, 150), testing::Vector(9000)}) {
    SCOPED_TRACE(Describe(shape));
    const std::vector<float> content = RandomFloats(3, shape.matrix.elements);
    TwinArray<float> gradient = Twin(content);
    TwinArray<double> sums(device_.get());
    ASSERT_TRUE(sums.Resize(shape.matrix.BlocksDown()).ok());
    DeviceBuffer workspace(device_.get());
    ASSERT_TRUE(workspace.Reserve(backend_->RowSumsWorkspace(shape.matrix) * sizeof(double)).ok());
    backend_->RowSums(shape.matrix, gradient.device(), static_cast<double*>(workspace.data()),
                      sums.device());
    sums.CopyOut();
    ASSERT_TRUE(device_->Finish().ok());
    EXPECT_EQ(std::vector<double>(sums.host().begin(), sums.host().end()),
              waiting->RowSums(shape.matrix, content));
  }
}

}  // namespace
}  // namespace distro
