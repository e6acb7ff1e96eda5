// Memory, queues and errors of a GPU: over the emulated runtime, with the tests' allocator and with
// CUDA's, and on a GPU.
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/kernels/backends.h"

namespace distro {
namespace {

using testing::TwinOf;

constexpr size_t kTooMuch = size_t{1} << 50;

struct GpuCase {
  std::string name;
  std::function<std::unique_ptr<cuda::Gpu>()> make;
};
std::vector<GpuCase> AllGpus() {
  return {{"cuda_emulated", [] { return testing::MakeEmulatedGpu(); }},
          {"cuda_malloc_emulated", testing::MakeEmulatedGpuWithCudaMalloc},
          {"cuda", testing::GpuOnThisMachine}};
}
std::string NameOf(const ::testing::TestParamInfo<GpuCase>& info) { return info.param.name; }

class GpuTest : public ::testing::TestWithParam<GpuCase> {
 protected:
  void SetUp() override {
    if (gpu_ == nullptr) GTEST_SKIP() << "needs a GPU, and a build with DISTRO_CUDA";
  }
  const std::unique_ptr<cuda::Gpu> gpu_ = GetParam().make();
};
INSTANTIATE_TEST_SUITE_P(All, GpuTest, ::testing::ValuesIn(AllGpus()), NameOf);

// The hash of an array.
class HashOf {
 public:
  HashOf(cuda::Gpu* gpu, const std::vector<float>& content)
      : gpu_(gpu), array_(TwinOf(gpu, content)), sum_(gpu) {
    EXPECT_TRUE(sum_.Resize(1).ok());
  }
  void Enqueue() {
    array_.CopyIn();
    sum_.Fill(0);
    gpu_->StateHash(0, array_.device().data(), static_cast<int64_t>(array_.host().size()),
                    sum_.device().data());
    sum_.CopyOut();
  }
  uint64_t Finish() {
    EXPECT_TRUE(gpu_->Finish().ok());
    return sum_.host()[0];
  }

 private:
  cuda::Gpu* const gpu_;
  TwinArray<float> array_;
  TwinArray<uint64_t> sum_;
};

void ExpectThatLaunchesSucceed(cuda::Gpu* gpu) {
  HashOf hash(gpu, {1});
  hash.Enqueue();
  hash.Finish();
}

// Each copy overwrites what the work before it reads.
TEST_P(GpuTest, CopiesBesideRunAfterEarlierWorkAndBeforeTheWorkThatAwaitsThem) {
  constexpr size_t kElements = 1000, kRounds = 4;
  TwinArray<float> array = TwinOf(gpu_.get(), std::vector<float>(kElements, 0));
  array.CopyIn();
  std::vector<TwinArray<float>> sent, seen;
  for (size_t round = 0; round < kRounds; ++round) {
    sent.push_back(TwinOf(gpu_.get(), std::vector<float>(kElements, 1.0f + round)));
    seen.push_back(TwinOf(gpu_.get(), std::vector<float>(kElements, -1)));
  }
  for (size_t round = 0; round < kRounds; ++round) {
    gpu_->CopyOut(array.device().data(), kElements * sizeof(float), seen[round].host().data());
    gpu_->CopyInBeside(sent[round].host().data(), kElements * sizeof(float), array.device().data());
    sent[round].Fill(0);  // beside it
    gpu_->AwaitCopies();
  }
  array.CopyOut();
  ASSERT_TRUE(gpu_->Finish().ok());
  for (size_t round = 0; round < kRounds; ++round) {
    for (const float value : seen[round].host()) ASSERT_EQ(value, round);
  }
  for (const float value : array.host()) ASSERT_EQ(value, kRounds);
}

TEST_P(GpuTest, FinishAwaitsCopiesBeside) {
  TwinArray<float> array = TwinOf<float>(gpu_.get(), {1, 2, 3});
  gpu_->CopyInBeside(array.host().data(), 3 * sizeof(float), array.device().data());
  ASSERT_TRUE(gpu_->Finish().ok());
  std::fill(array.host().begin(), array.host().end(), 0);  // the copy does not read it any more
  array.CopyOut();
  ASSERT_TRUE(gpu_->Finish().ok());
  EXPECT_EQ(array.host(), (std::vector<float>{1, 2, 3}));
}

// CUDA keeps an error until somebody asks for it, which every launch does.
TEST_P(GpuTest, LaunchesAfterFailedAllocation) {
  EXPECT_TRUE(absl::IsResourceExhausted(gpu_->Allocate(kTooMuch).status()));
  ExpectThatLaunchesSucceed(gpu_.get());
  EXPECT_TRUE(absl::IsResourceExhausted(gpu_->AllocateHost(kTooMuch).status()));
  ExpectThatLaunchesSucceed(gpu_.get());
}

TEST_P(GpuTest, FinishReturnsTheFirstErrorOnce) {
  TwinArray<float> array = TwinOf<float>(gpu_.get(), {1, 2, 3});
  gpu_->CopyIn(nullptr, sizeof(float), array.device().data());
  gpu_->Fill(nullptr, 0, sizeof(float));
  const absl::Status failed = gpu_->Finish();
  EXPECT_TRUE(absl::IsInternal(failed)) << failed;
  EXPECT_THAT(std::string(failed.message()), ::testing::StartsWith("copy: cudaErrorInvalidValue"));
  ExpectThatLaunchesSucceed(gpu_.get());
}

// A thread has a current device; the GPU that was made last has made itself that.
TEST_P(GpuTest, WorksFromOtherThreads) {
  const std::unique_ptr<cuda::Gpu> other = GetParam().make();
  const std::vector<float> content = testing::RandomFloats(1, 300);
  const uint64_t want = testing::WaitingReference()->StateHash(0, content);
  HashOf first(gpu_.get(), content), second(other.get(), content);
  const auto use = [&] {
    first.Enqueue();
    second.Enqueue();
    EXPECT_EQ(first.Finish(), want);
    EXPECT_EQ(second.Finish(), want);
  };
  use();
  std::thread(use).join();
}

}  // namespace
}  // namespace distro
