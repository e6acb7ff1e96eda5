// What the local steps of a round did, as a whole: how far the copy has come, and less of it where
// that is too far (UpdateRuleKind::delta_clip). In the host's memory. Stateless.
#pragma once

#include "worker/optimizer/update_rule.h"

namespace distro::worker {

// done <- copy - parameters.
void StepsDone(const RunSpans& parameters, const RunSpans& copy, const RunSpans& done);

// copy <- parameters + scale * (copy - parameters).
void ScaleSteps(float scale, const RunSpans& parameters, const RunSpans& copy);

}  // namespace distro::worker
