// Torch's operators do what the CPU's own code does, up to rounding.
#include <algorithm>
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/newton_schulz.h"
#include "tests/worker/model/observed_copies.h"
#include "worker/node/torch_inner_backend.h"
#include "worker/node/torch_orthogonalizer.h"
#include "worker/rules/deltas/whole_matrices.h"

namespace distro::worker {
namespace {

std::vector<float> Random(int64_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> floats(count);
  for (float& each : floats) each = normal(generator);
  return floats;
}

void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected, float share) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], share * (std::abs(expected[i]) + 1)) << i;
}

// A size at which vectors of any width leave a rest.
constexpr int64_t kElements = 1003;

class TorchInnerBackendTest : public ::testing::Test {
 protected:
  const std::unique_ptr<InnerBackend> torch_ = MakeTorchInnerBackend(at::kCPU);
  const std::unique_ptr<InnerBackend> cpu_ = MakeCpuInnerBackend();
};

TEST_F(TorchInnerBackendTest, StepsOfAdamWAreTheCpus) {
  struct State {
    std::vector<float> first = std::vector<float>(kElements);
    std::vector<float> second = std::vector<float>(kElements);
    std::vector<float> x = Random(kElements, 1);
  };
  State of_torch, of_cpu;
  for (const uint64_t count : {1, 2, 3}) {
    const AdamWStep step = {.count = count,
                            .rate = 0.05f,
                            .gradient_scale = count == 2 ? 0.25f : 1.0f,
                            .beta1 = 0.9f,
                            .beta2 = 0.95f,
                            .epsilon = 1e-8f,
                            .weight_decay = count == 3 ? 0.0f : 0.1f};
    for (auto& [backend, state] : {std::pair(torch_.get(), &of_torch), {cpu_.get(), &of_cpu}}) {
      std::vector<float> gradient = Random(kElements, 10 + count);
      ASSERT_EQ(backend->AdamW(step, absl::MakeSpan(gradient), absl::MakeSpan(state->first),
                               absl::MakeSpan(state->second), absl::MakeSpan(state->x)),
                absl::OkStatus());
    }
  }
  ExpectNear(of_torch.first, of_cpu.first, 1e-6f);
  ExpectNear(of_torch.second, of_cpu.second, 1e-6f);
  ExpectNear(of_torch.x, of_cpu.x, 1e-6f);
  EXPECT_NE(of_torch.x, Random(kElements, 1));
}

TEST_F(TorchInnerBackendTest, MuonsDirectionAndStepAreTheCpus) {
  const std::vector<float> gradient = Random(kElements, 2);
  std::vector<std::vector<float>> buffers, directions, ends;
  for (InnerBackend* const backend : {torch_.get(), cpu_.get()}) {
    std::vector<float> buffer = Random(kElements, 3), x = Random(kElements, 4);
    std::vector<float> direction(kElements, std::nanf(""));  // as memory may be that nobody wrote
    ASSERT_EQ(backend->MakeDirection(0.95f, 0.5f, gradient, absl::MakeSpan(buffer),
                                     absl::MakeSpan(direction)),
              absl::OkStatus());
    ASSERT_EQ(backend->MoveAlong({.rate = 0.02f, .scale = 3, .weight_decay = 0.1f}, direction,
                                 absl::MakeSpan(x)),
              absl::OkStatus());
    buffers.push_back(buffer);
    directions.push_back(direction);
    ends.push_back(x);
  }
  ExpectNear(buffers[0], buffers[1], 1e-6f);
  ExpectNear(directions[0], directions[1], 1e-6f);
  ExpectNear(ends[0], ends[1], 1e-6f);
}

struct Matrix {
  int64_t rows;
  int64_t cols;
};

class TorchOrthogonalizerTest : public ::testing::TestWithParam<Matrix> {
 protected:
  std::vector<float> Orthogonal(at::ScalarType type, const std::vector<float>& u) const {
    const auto torch = MakeTorchOrthogonalizer(at::kCPU, at::kCPU, type);
    const auto memory = torch->Allocate(static_cast<int64_t>(u.size()));
    EXPECT_TRUE(memory.ok()) << memory.status();
    std::copy(u.begin(), u.end(), memory->floats().begin());
    EXPECT_EQ(torch->NewtonSchulz(GetParam().rows, GetParam().cols, 5, {memory->floats()}),
              absl::OkStatus());
    return {memory->floats().begin(), memory->floats().end()};
  }
};
INSTANTIATE_TEST_SUITE_P(Matrices, TorchOrthogonalizerTest,
                         ::testing::Values(Matrix{48, 80}, Matrix{80, 48}, Matrix{33, 33},
                                           Matrix{1, 7}));

TEST_P(TorchOrthogonalizerTest, DirectionsAreTheCpus) {
  const auto [rows, cols] = GetParam();
  const std::vector<float> u = Random(rows * cols, 7);
  std::vector<float> expected = u;
  NewtonSchulz(*SupportedVectorKernels().back().matrix, rows, cols, 5, absl::MakeSpan(expected));
  ExpectNear(Orthogonal(at::kFloat, u), expected, 1e-4f);
  // Eight bits a number, over five iterations.
  ExpectNear(Orthogonal(at::kBFloat16, u), expected, 0.1f);
}

TEST_P(TorchOrthogonalizerTest, ZerosStayZeros) {
  const std::vector<float> zeros(GetParam().rows * GetParam().cols);
  EXPECT_EQ(Orthogonal(at::kFloat, zeros), zeros);
  EXPECT_EQ(Orthogonal(at::kBFloat16, zeros), zeros);
}

// With cpu_offload the matrix is on the host, where Torch would convert on the CPU.
TEST_P(TorchOrthogonalizerTest, SendsUnconverted) {
  std::vector<float> u = Random(GetParam().rows * GetParam().cols, 8);
  const testing::ObservedCopies observed(u);
  const auto torch = MakeTorchOrthogonalizer(at::kCPU, at::kCPU, at::kBFloat16);
  ASSERT_EQ(torch->NewtonSchulz(GetParam().rows, GetParam().cols, 5, {absl::MakeSpan(u)}),
            absl::OkStatus());
  EXPECT_GT(observed.copies(), 0);
  EXPECT_EQ(observed.conversions(), 0);
}

TEST_P(TorchOrthogonalizerTest, BatchesMatrices) {
  const auto [rows, cols] = GetParam();
  std::vector<std::vector<float>> us, expected;
  std::vector<absl::Span<float>> batch;
  for (const float scale : {1.0f, 1000.0f, 0.0f}) {
    us.push_back(Random(rows * cols, 9 + us.size()));
    for (float& each : us.back()) each *= scale;
    expected.push_back(Orthogonal(at::kFloat, us.back()));
  }
  for (std::vector<float>& u : us) batch.push_back(absl::MakeSpan(u));
  const auto torch = MakeTorchOrthogonalizer(at::kCPU, at::kCPU, at::kFloat);
  ASSERT_EQ(torch->NewtonSchulz(rows, cols, 5, batch), absl::OkStatus());
  for (size_t i = 0; i < us.size(); ++i) ExpectNear(us[i], expected[i], 1e-5f);
}

// Counts the products of Torch's batches by the thread that made it, while it lives.
class CountedProducts {
 public:
  CountedProducts() {
    counter_ = this;
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&Count).scopes({at::RecordScope::FUNCTION}));
  }
  ~CountedProducts() { at::removeCallback(handle_); }
  CountedProducts(const CountedProducts&) = delete;
  CountedProducts& operator=(const CountedProducts&) = delete;

  int products() const { return products_; }

 private:
  static std::unique_ptr<at::ObserverContext> Count(const at::RecordFunction& function) {
    const absl::string_view name = function.name();
    counter_->products_ += name == "aten::bmm" || name == "aten::baddbmm";
    return nullptr;
  }

  static inline thread_local CountedProducts* counter_ = nullptr;  // Torch takes bare functions
  at::CallbackHandle handle_ = 0;
  int products_ = 0;
};

// A GPU takes 4 us for each launch.
TEST(TorchOrthogonalizerBatchTest, MatricesOfOneShapeAreProductsOfOneBatch) {
  std::vector<TensorSpec> tensors;
  for (int i = 0; i < 6; ++i) tensors.push_back({absl::StrCat("m", i), {48, i < 4 ? 80 : 48}});
  const Layout layout = *Layout::Create(*Manifest::Create(tensors), 16);
  const auto torch = MakeTorchOrthogonalizer(at::kCPU, at::kCPU, at::kFloat);
  const WholeMatrices matrices(
      {.layout = &layout, .runs = WholeRuns(layout), .orthogonalizer = torch.get()},
      std::vector<bool>(6, true), /*iterations=*/5);
  const CountedProducts counted;
  ASSERT_EQ(matrices.Orthogonalize(
                [](size_t run, absl::Span<float> direction) {
                  std::ranges::copy(Random(static_cast<int64_t>(direction.size()), run),
                                    direction.begin());
                  return absl::OkStatus();
                },
                [](size_t, absl::Span<const float>) { return absl::OkStatus(); }),
            absl::OkStatus());
  EXPECT_EQ(counted.products(), 2 * 5 * 3) << "of two shapes, three in each iteration";
}

TEST(TorchOrthogonalizerMemoryTest, OfNothingIsNone) {
  const auto torch = MakeTorchOrthogonalizer(at::kCPU, at::kCPU, at::kFloat);
  EXPECT_TRUE(torch->Allocate(0)->floats().empty());
}

}  // namespace
}  // namespace distro::worker
