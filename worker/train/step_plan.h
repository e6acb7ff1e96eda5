// Decides the training thread's next action (docs/algorithm.md, "A worker's step"): the order of
// gradient, upload and results that overlap 0 and 1 prescribe. Pure; the Trainer acts on it.
#pragma once

namespace distro::worker {

enum class StepAction {
  kTakeEvent,  // wait for, or take, the next opened or committed round
  kGradient,   // gradient of the open round at the parameters
  kLookahead,  // gradient of the round after the open one, at the lookahead copy
  kUpload,     // compress the current gradient and send it for the open round
  kOffer,      // send the pending update of the open round again
};

struct StepState {
  bool overlap = false;
  bool event_ready = false;    // the next event would not block
  bool round_open = false;     // a round is open and not yet committed here
  bool has_slot = false;       // this worker has samples in the open round
  bool has_next_slot = false;  // and in the one after it
  bool has_gradient = false;   // a gradient that was not uploaded
  bool uploaded = false;       // this session has sent its update of the open round
  // An earlier session or process has sent an update for it, whose result is not known.
  bool has_pending = false;
};

// The rules, in order:
// * after an upload with overlap, the lookahead gradient precedes any event: it must use the
//   momentum after compress and the parameters before the open round's result, whenever that
//   arrives;
// * waiting events are handled before a gradient is used, so that a late gradient is added after
//   all committed results;
// * a pending update of the open round is sent again with the same bytes, instead of a new update;
// * an existing gradient is used for the open round, even if it was computed for an earlier one;
// * without a gradient, a worker with samples computes it at the parameters.
StepAction NextAction(const StepState& state);

}  // namespace distro::worker
