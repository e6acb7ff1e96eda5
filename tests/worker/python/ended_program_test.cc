// Local steps of a program that ends in the middle of a round: those that were taken count.
#include <thread>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/run/sample_pool.h"
#include "gtest/gtest.h"
#include "tests/testing/worker/delta_worker.h"
#include "worker/python/module_learner.h"
#include "worker/train/gradient_step.h"

namespace distro::worker {
namespace {

using testing::DeltaWorker;
using testing::kSmallLlama;

// Gradients of norm 1, as many as there are, then an end with `status`.
class Scripted final : public Objective {
 public:
  Scripted(int gradients, absl::Status status) : left_(gradients), status_(std::move(status)) {}
  absl::StatusOr<Gradient> GradientOf(const v1::Slot&, GradientAt, GoesOn goes_on) override {
    if (left_-- == 0) return status_;
    went_on.push_back(goes_on().ok());
    return Gradient{.loss = 2, .norm = 1};
  }
  bool evaluates() const override { return false; }
  absl::StatusOr<double> HeldOutLoss(HeldOutText, GoesOn) override { return status_; }

  std::vector<bool> went_on;

 private:
  int left_;
  const absl::Status status_;
};

class EndedProgramTest : public ::testing::Test {
 protected:
  EndedProgramTest() {
    std::vector<std::string> names;
    std::vector<at::Tensor> tensors;
    for (const TensorSpec& spec : native_.layout.manifest().tensors()) {
      names.push_back(spec.name);
      tensors.push_back(at::zeros(spec.shape).requires_grad_());
    }
    module_ = std::make_unique<ModuleTensors>(*ModuleTensors::Create(names, tensors));
    const std::vector<bool> none(names.size(), false);
    learner_ = std::make_unique<ModuleLearner>(
        &native_.layout, module_.get(),
        LocalDeltas(native_.config, &native_.layout, none, LocalStepsBy::kCaller), &program_,
        /*threads=*/2);
  }

  // Of a round of two local steps. The program answers `steps` of them, and then is closed.
  absl::StatusOr<Gradient> Take(Objective* objective, int steps = 2) {
    PhaseClock phases(Clock::Real());
    GradientStep step(
        {.learner = learner_.get(), .objective = objective, .phases = &phases, .goes_on = [] {
           return absl::CancelledError("stopped");
         }});
    std::thread program([&, steps]() mutable {
      while (program_.Wait(absl::Seconds(60))->kind == Request::Kind::kStep) {
        if (steps-- > 0)
          EXPECT_TRUE(program_.Answer(0).ok());
        else
          program_.Close();
      }
    });
    const absl::StatusOr<Gradient> gradient =
        step.TakeLocalSteps(ConsecutiveSamples(0, 4), native_.step, absl::InfiniteDuration());
    program_.End(absl::OkStatus());
    program.join();
    return gradient;
  }

  DeltaWorker native_{kSmallLlama, /*segment_blocks=*/3};
  HandOver program_;
  std::unique_ptr<ModuleTensors> module_;
  std::unique_ptr<ModuleLearner> learner_;
};

TEST_F(EndedProgramTest, KeepsStepsBeforeEnd) {
  Scripted objective(1, absl::CancelledError("the program computes no more"));
  const absl::StatusOr<Gradient> gradient = Take(&objective);
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  EXPECT_EQ(gradient->local_steps, 1);
  EXPECT_TRUE(gradient->finite);
  EXPECT_EQ(gradient->loss, 2);
}

TEST_F(EndedProgramTest, DropsUnfinishedStep) {
  Scripted objective(2, absl::OkStatus());
  const absl::StatusOr<Gradient> gradient = Take(&objective, /*steps=*/1);
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  EXPECT_TRUE(gradient->finite);
  Scripted again(2, absl::OkStatus());
  EXPECT_TRUE(absl::IsCancelled(Take(&again, /*steps=*/0).status())) << "there is none before";
}

TEST_F(EndedProgramTest, WithoutAStepThereIsNothing) {
  Scripted objective(0, absl::CancelledError("the program computes no more"));
  EXPECT_TRUE(absl::IsCancelled(Take(&objective).status()));
}

TEST_F(EndedProgramTest, ReturnsErrors) {
  Scripted objective(1, absl::InvalidArgumentError("a parameter is on a GPU"));
  EXPECT_EQ(Take(&objective).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(EndedProgramTest, OnceAStepWasTakenTheOthersFollow) {
  Scripted objective(2, absl::OkStatus());
  ASSERT_TRUE(Take(&objective).ok());
  EXPECT_EQ(objective.went_on, (std::vector<bool>{false, true}));
}

}  // namespace
}  // namespace distro::worker
