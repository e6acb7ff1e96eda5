// Rounds of which a program takes the local steps, also of one that ends in the middle of them.
#include "worker/python/module_objective.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/run/sample_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/worker/delta_worker.h"
#include "worker/train/gradient_step.h"

namespace distro::worker {
namespace {

using testing::DeltaWorker;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::kSmallLlama;

class ModuleObjectiveTest : public ::testing::Test {
 protected:
  ModuleObjectiveTest() {
    std::vector<std::string> names;
    for (const TensorSpec& spec : native_.layout.manifest().tensors()) {
      names.push_back(spec.name);
      tensors_.push_back(at::ones(spec.shape).requires_grad_());
    }
    module_ = std::make_unique<ModuleTensors>(*ModuleTensors::Create(names, tensors_));
    const std::vector<bool> none(names.size(), false);
    learner_ = std::make_unique<ModuleLearner>(
        &native_.layout, module_.get(),
        LocalDeltas(native_.config, &native_.layout, none, LocalStepsBy::kCaller), &program_,
        /*threads=*/2);
    objective_ = std::make_unique<ModuleObjective>(learner_.get(), &program_, &phases_);
  }

  // Of a round of two local steps. `reply` is how the program treats the request.
  absl::StatusOr<Gradient> Take(const std::function<void()>& reply,
                                absl::Status goes_on = absl::OkStatus(),
                                absl::Duration window_ends = absl::InfiniteDuration()) {
    GradientStep step({.learner = learner_.get(),
                       .objective = objective_.get(),
                       .phases = &phases_,
                       .goes_on = [goes_on] { return goes_on; }});
    std::thread program([&] {
      const std::optional<Request> request = program_.Wait(absl::Seconds(60));
      if (request->kind == Request::Kind::kEnd) return;
      asked_ = *request;
      reply();
    });
    const absl::StatusOr<Gradient> gradient =
        step.TakeLocalSteps(ConsecutiveSamples(0, 4), native_.step, window_ends);
    program_.End(absl::OkStatus());
    program.join();
    return gradient;
  }
  uint64_t local_steps() const { return learner_->kept()->local_steps; }

  DeltaWorker native_{kSmallLlama, /*segment_blocks=*/3};
  HandOver program_;
  PhaseClock phases_{Clock::Real()};
  std::vector<at::Tensor> tensors_;
  std::unique_ptr<ModuleTensors> module_;
  std::unique_ptr<ModuleLearner> learner_;
  std::unique_ptr<ModuleObjective> objective_;
  Request asked_;
};

TEST_F(ModuleObjectiveTest, AsksOnceForAllSteps) {
  objective_->Expect(ConsecutiveSamples(0, 9));
  const absl::Duration ends = Clock::Real()->MonotonicNow() + absl::Hours(1);
  const absl::StatusOr<Gradient> gradient = Take(
      [&] { EXPECT_TRUE(program_.Reply({.value = 2, .norm = 3, .steps = 2, .skipped = 1}).ok()); },
      absl::OkStatus(), ends);
  EXPECT_EQ(asked_.kind, Request::Kind::kRound);
  EXPECT_EQ(SamplesOf(asked_.samples), 4u);
  EXPECT_EQ(SamplesOf(asked_.expected), 9u);
  EXPECT_THAT(asked_.rates, ElementsAre(0.01f, 0.02f));
  EXPECT_EQ(asked_.clip_norm, native_.step.clip_norm());
  EXPECT_EQ(asked_.window_ends, ends);
  const absl::StatusOr<RunSpans> elements = module_->Elements();
  ASSERT_TRUE(elements.ok()) << elements.status();
  for (const absl::Span<float> tensor : *elements) EXPECT_THAT(tensor, Each(0)) << "the parameters";
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  EXPECT_EQ(gradient->loss, 2);
  EXPECT_EQ(gradient->norm, 3);
  EXPECT_TRUE(gradient->finite);
  EXPECT_EQ(gradient->local_steps, 2);
  EXPECT_EQ(gradient->skipped_steps, 1);
  EXPECT_EQ(local_steps(), 1u);
}

TEST_F(ModuleObjectiveTest, WithoutFiniteStepTheRoundIsNotFinite) {
  const absl::StatusOr<Gradient> gradient = Take(
      [&] { EXPECT_TRUE(program_.Reply({.value = 2, .norm = 3, .steps = 2, .skipped = 2}).ok()); });
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  EXPECT_FALSE(gradient->finite);
  EXPECT_EQ(local_steps(), 0u);
}

TEST_F(ModuleObjectiveTest, KeepsStepsBeforeEnd) {
  const absl::StatusOr<Gradient> gradient =
      Take([&] { program_.Close({.value = 2, .norm = 3, .steps = 1}); });
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  EXPECT_EQ(gradient->local_steps, 1);
  EXPECT_TRUE(gradient->finite);
  EXPECT_EQ(gradient->loss, 2);
  EXPECT_EQ(local_steps(), 1u);
}

TEST_F(ModuleObjectiveTest, WithoutAStepThereIsNothing) {
  EXPECT_TRUE(absl::IsCancelled(Take([&] { program_.Close({}); }).status()));
  EXPECT_EQ(local_steps(), 0u);
}

TEST_F(ModuleObjectiveTest, AsksForNothingOnceStopped) {
  EXPECT_EQ(Take([] { ADD_FAILURE(); }, absl::CancelledError("stopped")).status(),
            absl::CancelledError("stopped"));
}

TEST_F(ModuleObjectiveTest, NamesChangedTensor) {
  tensors_[0].set_data(tensors_[0].to(at::kDouble));
  EXPECT_EQ(Take([] { ADD_FAILURE(); }).status().code(), absl::StatusCode::kInvalidArgument);
}

// With signs.
TEST_F(ModuleObjectiveTest, MeasuresGradient) {
  std::thread program([&] {
    EXPECT_EQ(program_.Wait(absl::Seconds(60))->rates.size(), 1u) << "one step";
    for (at::Tensor& tensor : tensors_) tensor.mutable_grad() = at::zeros_like(tensor);
    tensors_[0].mutable_grad().view({-1})[0] = 4;
    EXPECT_TRUE(program_.Reply({.value = 2}).ok());
  });
  const absl::StatusOr<Gradient> gradient = objective_->GradientOf(
      ConsecutiveSamples(0, 4), GradientAt::kParameters, [] { return absl::OkStatus(); });
  program.join();
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  EXPECT_EQ(gradient->loss, 2);
  EXPECT_EQ(gradient->norm, 4);
  EXPECT_TRUE(gradient->finite);
}

}  // namespace
}  // namespace distro::worker
