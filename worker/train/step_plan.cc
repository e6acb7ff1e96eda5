#include "worker/train/step_plan.h"

namespace distro::worker {

StepAction NextAction(const StepState& state) {
  if (!state.round_open) return StepAction::kTakeEvent;
  if (state.uploaded) {
    return state.overlap && state.has_next_slot && !state.has_gradient ? StepAction::kLookahead
                                                                       : StepAction::kTakeEvent;
  }
  if (state.event_ready) return StepAction::kTakeEvent;
  if (state.has_pending) return StepAction::kOffer;
  if (state.has_gradient) return StepAction::kUpload;
  return state.has_slot ? StepAction::kGradient : StepAction::kTakeEvent;
}

}  // namespace distro::worker
