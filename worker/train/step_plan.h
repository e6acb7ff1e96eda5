// Decides the training thread's next action (docs/algorithm.md, "A worker's step"): the order of
// gradient, upload and results that overlap 0 and 1 prescribe. Pure; the Trainer acts on it.
#pragma once

namespace distro::worker {

enum class StepAction {
  kTakeEvent,  // wait for, or take, the next opened or committed round
  kGradient,   // gradient of the open round at the parameters
  kLookahead,  // gradient of the round after the open one, at the lookahead copy
  kUpload,     // compress the gradient in hand and hand it in for the open round
  kOffer,      // hand in again what is pending of the open round
};

struct StepState {
  bool overlap = false;
  bool event_ready = false;    // the next event would not block
  bool round_open = false;     // a round is open and not yet committed here
  bool has_slot = false;       // this worker has samples in the open round
  bool has_next_slot = false;  // and in the one after it
  bool has_gradient = false;   // a gradient that no upload has used
  bool uploaded = false;       // this session handed in its update of the open round
  // An earlier session or process handed one in for it, and its fate is open.
  bool has_pending = false;
};

// The rules, in order:
// * after an upload with overlap, the lookahead gradient comes before any event: it must see the
//   momentum as compress left it and the parameters before the open round's result, whenever that
//   result arrives;
// * events that are there come before a gradient is used, so that a late one is added after all
//   committed results;
// * what is pending of the open round is handed in again, the same bytes, rather than another
//   update of that round;
// * a gradient in hand serves the round that is open, also when it was made for an earlier one;
// * without one, a worker with samples makes it at the parameters.
StepAction NextAction(const StepState& state);

}  // namespace distro::worker
