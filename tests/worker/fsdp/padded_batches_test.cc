// Batches that are padded to one shape: attention sees no other, and the results are those of the
// batches as they are.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/model/observed_attention.h"
#include "tests/worker/model/tiny_model.h"
#include "worker/fsdp/thread_communicator.h"
#include "worker/fsdp/unit_driver.h"

namespace distro::worker {
namespace {

using ::distro::worker::testing::RandomTokens;
using ::distro::worker::testing::TinyConfig;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr int kSequences = 3, kPositions = 8;
constexpr float kRounding = 1e-5f;

// One rank, on the test's thread.
class PaddedBatchesTest : public ::testing::Test {
 protected:
  PaddedBatchesTest() { SetTorchThreads(1); }

  std::unique_ptr<UnitDriver> MakeDriver(const BatchShape& padded_to) {
    return std::make_unique<UnitDriver>(
        FsdpOptions{}, at::kCPU,
        UnitDriver::Dependencies{.model = tiny_.model.get(),
                                 .shards = &shards_,
                                 .whole = &shards_,
                                 .communicator = communicators_[0].get(),
                                 .memory = &memory_,
                                 .padded_to = padded_to});
  }
  at::Tensor Parameters() const {
    return at::arange(padded_->parameter_elements(), at::kFloat).mul(1.3).sin().mul(0.3);
  }

 private:
  const DecoderConfig config_ = TinyConfig();
  const testing::TinyModel tiny_{config_};
  const ShardPlan shards_ =
      ShardPlan::Create(tiny_.layout, UnitTensors(Decoder(config_), tiny_.layout.manifest()), 1)
          .value();
  const std::vector<std::unique_ptr<Communicator>> communicators_ =
      MakeThreadGroup(1, {})->TakeCommunicators();
  MemoryCounter memory_;

 protected:
  const std::unique_ptr<UnitDriver> padded_ =
      MakeDriver({.sequences = kSequences, .positions = kPositions});
  const std::unique_ptr<UnitDriver> as_it_is_ = MakeDriver({});
};

TEST_F(PaddedBatchesTest, GivesSamplesOneShape) {
  const testing::ObservedAttention observed;
  for (int length = 1; length <= kPositions; ++length) {
    const std::vector<int32_t> tokens = RandomTokens(length, 40, length);
    const TokenBatch batch{.tokens = tokens, .sequences = 1};
    const auto logits = padded_->NextLogits(&batch, Parameters());
    ASSERT_TRUE(logits.ok()) << logits.status();
    EXPECT_THAT(observed.shapes(), ElementsAre(ElementsAre(1, 4, kPositions, 8)));
  }
}

TEST_F(PaddedBatchesTest, LogitsAreThoseOfTheTokens) {
  for (int length = 1; length <= kPositions + 1; ++length) {  // a longer sequence stays as it is
    const std::vector<int32_t> tokens = RandomTokens(length, 40, length);
    const TokenBatch batch{.tokens = tokens, .sequences = 1};
    const auto expected = as_it_is_->NextLogits(&batch, Parameters());
    ASSERT_TRUE(expected.ok()) << expected.status();
    EXPECT_EQ(expected->size(), 40u);
    EXPECT_THAT(*padded_->NextLogits(&batch, Parameters()),
                Pointwise(FloatNear(kRounding), *expected));
  }
}

TEST_F(PaddedBatchesTest, GivesEvaluationsOneShape) {
  const testing::ObservedAttention observed;
  for (int sequences = 1; sequences <= kSequences; ++sequences) {
    const std::vector<int32_t> tokens = RandomTokens(sequences * (kPositions + 1), 40, sequences);
    const TokenBatch batch{.tokens = tokens, .sequences = sequences};
    ASSERT_EQ(padded_->Loss(&batch, Parameters()).status(), absl::OkStatus());
    EXPECT_THAT(observed.shapes(), ElementsAre(ElementsAre(kSequences, 4, kPositions, 8)));
  }
}

TEST_F(PaddedBatchesTest, LossesAreThoseOfTheSequences) {
  for (int sequences = 1; sequences <= kSequences; ++sequences) {
    const std::vector<int32_t> tokens = RandomTokens(sequences * (kPositions + 1), 40, sequences);
    const TokenBatch batch{.tokens = tokens, .sequences = sequences};
    EXPECT_NEAR(*padded_->Loss(&batch, Parameters()), *as_it_is_->Loss(&batch, Parameters()),
                kRounding);
  }
}

TEST_F(PaddedBatchesTest, GradientsAreThoseOfTheSequences) {
  const std::vector<int32_t> tokens = RandomTokens(2 * (kPositions + 1), 40, 1);
  const TokenBatch batch{.tokens = tokens, .sequences = 2};
  std::vector<at::Tensor> gradients;
  for (UnitDriver* const driver : {padded_.get(), as_it_is_.get()}) {
    const at::Tensor& gradient =
        gradients.emplace_back(at::zeros({driver->gradient_elements()}, at::kFloat));
    ASSERT_TRUE(driver->Gradient(&batch, Parameters(), Accumulation::kStore, gradient).ok());
    ASSERT_EQ(driver->FinishGradient(gradient), absl::OkStatus());
  }
  EXPECT_GT(gradients[1].abs().max().item<float>(), 0.01);
  EXPECT_LE((gradients[0] - gradients[1]).abs().max().item<float>(), kRounding);
}

}  // namespace
}  // namespace distro::worker
