#include "worker/train/step_plan.h"

#include "gtest/gtest.h"

namespace distro::worker {
namespace {

TEST(StepPlanTest, WaitsWhenNoRoundIsOpen) {
  EXPECT_EQ(NextAction({.has_gradient = true}), StepAction::kTakeEvent);
}

TEST(StepPlanTest, MakesTheGradientOfTheOpenRound) {
  EXPECT_EQ(NextAction({.round_open = true, .has_slot = true}), StepAction::kGradient);
}

TEST(StepPlanTest, WaitsWithoutSamples) {
  EXPECT_EQ(NextAction({.round_open = true}), StepAction::kTakeEvent);
}

TEST(StepPlanTest, UploadsTheGradientInHand) {
  EXPECT_EQ(NextAction({.round_open = true, .has_slot = true, .has_gradient = true}),
            StepAction::kUpload);
}

// A gradient that was finished late serves the open round, with or without samples in it.
TEST(StepPlanTest, UploadsALateGradientForTheOpenRound) {
  EXPECT_EQ(NextAction({.round_open = true, .has_gradient = true}), StepAction::kUpload);
}

TEST(StepPlanTest, TakesResultsBeforeItUsesALateGradient) {
  EXPECT_EQ(
      NextAction({.event_ready = true, .round_open = true, .has_slot = true, .has_gradient = true}),
      StepAction::kTakeEvent);
}

TEST(StepPlanTest, OffersWhatIsPendingOfTheOpenRoundInsteadOfAnotherUpdate) {
  StepState state{.round_open = true, .has_slot = true, .has_pending = true};
  EXPECT_EQ(NextAction(state), StepAction::kOffer);
  state.has_gradient = true;
  EXPECT_EQ(NextAction(state), StepAction::kOffer);
  state.event_ready = true;
  EXPECT_EQ(NextAction(state), StepAction::kTakeEvent);
}

TEST(StepPlanTest, WaitsForTheResultAfterAnUpload) {
  EXPECT_EQ(
      NextAction({.round_open = true, .has_slot = true, .has_next_slot = true, .uploaded = true}),
      StepAction::kTakeEvent);
}

// The lookahead must see parameters without the open round's result, however early it arrives.
TEST(StepPlanTest, OverlapMakesTheNextGradientBeforeAnyEvent) {
  for (const bool ready : {false, true}) {
    EXPECT_EQ(NextAction({.overlap = true,
                          .event_ready = ready,
                          .round_open = true,
                          .has_slot = true,
                          .has_next_slot = true,
                          .uploaded = true}),
              StepAction::kLookahead);
  }
}

TEST(StepPlanTest, OverlapMakesOneGradientAhead) {
  EXPECT_EQ(NextAction({.overlap = true,
                        .round_open = true,
                        .has_next_slot = true,
                        .has_gradient = true,
                        .uploaded = true}),
            StepAction::kTakeEvent);
}

TEST(StepPlanTest, OverlapWithoutSamplesInTheNextRoundWaits) {
  EXPECT_EQ(NextAction({.overlap = true, .round_open = true, .has_slot = true, .uploaded = true}),
            StepAction::kTakeEvent);
}

}  // namespace
}  // namespace distro::worker
