#include "worker/model/gradient.h"

#include <cmath>
#include <thread>
#include <tuple>

#include "gtest/gtest.h"
#include "tests/worker/model/observed_reads.h"
#include "tests/worker/model/tiny_model.h"
#include "worker/model/batch_maker.h"

namespace distro::worker {
namespace {

using ::distro::worker::testing::Flat;
using ::distro::worker::testing::MakeLlama;
using ::distro::worker::testing::RandomTokens;
using ::distro::worker::testing::TinyConfig;
using ::distro::worker::testing::TinyModel;

constexpr int kSequences = 3;
constexpr int kPositions = 11;

std::vector<at::Tensor> Leaves(TinyModel& tiny) {
  std::vector<at::Tensor> leaves;
  for (int i = 0; i < tiny.parameters.tensors(); ++i) {
    leaves.push_back(at::from_blob(tiny.parameters.tensor(i).data(),
                                   tiny.layout.manifest().tensors()[i].shape, at::kFloat)
                         .requires_grad_());
  }
  return leaves;
}

// Torch's own backward through one graph of all units.
std::vector<at::Tensor> WholeGraphGradient(TinyModel& tiny, const Batch& batch) {
  const std::vector<at::Tensor> leaves = Leaves(tiny);
  at::Tensor value;
  for (const auto& unit : tiny.model->units()) {
    std::vector<at::Tensor> own;
    for (const int tensor : unit->tensors()) own.push_back(leaves[tensor]);
    value = unit->Forward(own, value, batch);
  }
  return torch::autograd::grad({value}, leaves);
}

using HeadsAndTied = std::tuple<int, int, bool>;  // query heads, KV heads, tied embeddings
class UnitGradientTest : public ::testing::TestWithParam<HeadsAndTied> {
 protected:
  DecoderConfig config() const {
    return TinyConfig(std::get<0>(GetParam()), std::get<1>(GetParam()), std::get<2>(GetParam()));
  }
};

// Both do the same f32 operations in the same order; only where paths meet may the order of a sum
// differ. Three paths at most meet in one value, so a few units in the last place (6e-8) of the
// largest value: 1e-6.
TEST_P(UnitGradientTest, EqualsTheWholeGraphs) {
  TinyModel tiny(config());
  const std::vector<int32_t> tokens = RandomTokens(kSequences * (kPositions + 1), 40, 7);
  TensorBuffer gradient(tiny.layout);
  const auto loss = tiny.model->LossAndGradient({.tokens = tokens, .sequences = kSequences},
                                                tiny.parameters, Accumulation::kStore, &gradient);
  ASSERT_TRUE(loss.ok()) << loss.status();
  const auto expected =
      WholeGraphGradient(tiny, BatchMaker(&tiny.model->architecture(), {})
                                   .Labelled({.tokens = tokens, .sequences = kSequences}));
  for (int i = 0; i < gradient.tensors(); ++i) {
    const at::Tensor exact = expected[i].contiguous();
    const float largest = exact.abs().max().item<float>();
    EXPECT_GT(largest, 0);
    for (size_t j = 0; j < gradient.tensor(i).size(); ++j) {
      ASSERT_NEAR(gradient.tensor(i)[j], exact.const_data_ptr<float>()[j], 1e-6 * largest)
          << tiny.layout.manifest().tensors()[i].name << " element " << j;
    }
  }
}

// A central difference along the gradient. Step 1e-3 in f32: rounding of the loss (3.7, half a unit
// 1.2e-7) over 2e-3 gives 1.2e-4, the third derivative less; the slope is |g|, above 0.5 here.
TEST_P(UnitGradientTest, IsTheSlopeOfTheLoss) {
  TinyModel tiny(config());
  const std::vector<int32_t> tokens = RandomTokens(kSequences * (kPositions + 1), 40, 8);
  const TokenBatch batch{.tokens = tokens, .sequences = kSequences};
  TensorBuffer gradient(tiny.layout);
  ASSERT_TRUE(
      tiny.model->LossAndGradient(batch, tiny.parameters, Accumulation::kStore, &gradient).ok());
  double squares = 0;
  for (const float value : Flat(gradient)) squares += double{value} * value;
  const double norm = std::sqrt(squares);
  const auto loss_at = [&](double distance) {
    TensorBuffer moved(tiny.layout);
    for (int i = 0; i < moved.tensors(); ++i) {
      for (size_t j = 0; j < moved.tensor(i).size(); ++j) {
        moved.tensor(i)[j] = static_cast<float>(tiny.parameters.tensor(i)[j] +
                                                distance / norm * gradient.tensor(i)[j]);
      }
    }
    return tiny.model->Loss(batch, moved).value();
  };
  EXPECT_NEAR((loss_at(1e-3) - loss_at(-1e-3)) / 2e-3, norm, 1e-3 * norm);
}

INSTANTIATE_TEST_SUITE_P(HeadsAndTied, UnitGradientTest,
                         ::testing::Combine(::testing::Values(4), ::testing::Values(1, 2, 4),
                                            ::testing::Bool()));

TEST(LossAndGradientTest, GivesTheSameBitsTwiceAndInAnotherThread) {
  TinyModel tiny(TinyConfig());
  const std::vector<int32_t> tokens = RandomTokens(48, 40, 9);
  const TokenBatch batch{.tokens = tokens, .sequences = 4};
  const auto run = [&](double* loss) {
    TensorBuffer gradient(tiny.layout);
    *loss = tiny.model->LossAndGradient(batch, tiny.parameters, Accumulation::kStore, &gradient)
                .value();
    return Flat(gradient);
  };
  double first_loss = 0, second_loss = 0, third_loss = 0;
  const std::vector<float> first = run(&first_loss);
  EXPECT_EQ(first, run(&second_loss));
  std::vector<float> third;
  std::thread([&] {
    SetTorchThreads(1);
    third = run(&third_loss);
  }).join();
  EXPECT_EQ(first, third);
  EXPECT_EQ(first_loss, second_loss);
  EXPECT_EQ(first_loss, third_loss);
}

TEST(LossAndGradientTest, AddsMicroBatchesInOrder) {
  TinyModel tiny(TinyConfig(4, 2, /*tied=*/true));
  const std::vector<int32_t> tokens = RandomTokens(3 * 12, 40, 10);
  TensorBuffer sum(tiny.layout);
  std::vector<std::vector<float>> parts;
  for (int micro = 0; micro < 3; ++micro) {
    const TokenBatch batch{.tokens = absl::MakeConstSpan(tokens).subspan(12 * micro, 12)};
    TensorBuffer part(tiny.layout);
    ASSERT_TRUE(
        tiny.model->LossAndGradient(batch, tiny.parameters, Accumulation::kStore, &part).ok());
    parts.push_back(Flat(part));
    ASSERT_TRUE(tiny.model
                    ->LossAndGradient(batch, tiny.parameters,
                                      micro == 0 ? Accumulation::kStore : Accumulation::kAdd, &sum)
                    .ok());
  }
  const std::vector<float> actual = Flat(sum);
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i], parts[0][i] + parts[1][i] + parts[2][i]) << i;
  }
}

// The mean over equal micro-batches is the gradient of the whole batch. Sums of 33 terms in another
// order: below 33 * 6e-8 of the largest magnitude.
TEST(LossAndGradientTest, MicroBatchesAverageToTheWholeBatch) {
  TinyModel tiny(TinyConfig());
  const std::vector<int32_t> tokens = RandomTokens(3 * 12, 40, 11);
  TensorBuffer whole(tiny.layout), sum(tiny.layout);
  ASSERT_TRUE(tiny.model
                  ->LossAndGradient({.tokens = tokens, .sequences = 3}, tiny.parameters,
                                    Accumulation::kStore, &whole)
                  .ok());
  for (int micro = 0; micro < 3; ++micro) {
    ASSERT_TRUE(
        tiny.model
            ->LossAndGradient({.tokens = absl::MakeConstSpan(tokens).subspan(12 * micro, 12)},
                              tiny.parameters, Accumulation::kAdd, &sum)
            .ok());
  }
  for (int i = 0; i < whole.tensors(); ++i) {
    float largest = 0;
    for (const float value : whole.tensor(i)) largest = std::max(largest, std::abs(value));
    for (size_t j = 0; j < whole.tensor(i).size(); ++j) {
      ASSERT_NEAR(sum.tensor(i)[j] / 3, whole.tensor(i)[j], 2e-6 * largest)
          << tiny.layout.manifest().tensors()[i].name;
    }
  }
}

// Parameters that nobody gathers. Notes what was read of the device when a gradient is complete.
class ReadingHooks final : public UnitHooks {
 public:
  explicit ReadingHooks(TinyModel& tiny) : tiny_(tiny), leaves_(Leaves(tiny)) {}

  absl::StatusOr<std::vector<at::Tensor>> Acquire(int unit) override {
    std::vector<at::Tensor> own;
    for (const int tensor : tiny_.model->units()[unit]->tensors()) own.push_back(leaves_[tensor]);
    return own;
  }
  absl::Status Release(int) override { return absl::OkStatus(); }
  absl::Status ReceiveGradients(int, std::vector<TensorGradient>) override {
    reads_.push_back(observed_.reads());
    return absl::OkStatus();
  }

  const std::vector<int>& reads() const { return reads_; }
  int reads_now() const { return observed_.reads(); }

 private:
  TinyModel& tiny_;
  const std::vector<at::Tensor> leaves_;
  const testing::ObservedReads observed_;
  std::vector<int> reads_;
};

// A read waits until the device has computed, and leaves it without work.
TEST(LossAndGradientTest, ReadsAfterBackwardPassIsEnqueued) {
  for (const int checkpoint_every : {0, 1}) {
    TinyModel tiny(TinyConfig());
    const std::vector<int32_t> tokens = RandomTokens(24, 40, 12);
    const Batch batch =
        BatchMaker(&tiny.model->architecture(), {}).Labelled({.tokens = tokens, .sequences = 2});
    ReadingHooks hooks(tiny);
    ASSERT_TRUE(LossAndGradient(tiny.model->units(), batch, checkpoint_every, hooks).ok());
    EXPECT_EQ(hooks.reads(), std::vector<int>(tiny.model->units().size(), 0));
    EXPECT_EQ(hooks.reads_now(), 1);  // the loss
  }
}

}  // namespace
}  // namespace distro::worker
