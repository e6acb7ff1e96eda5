// The learning rate of each step of a run. Pure functions.
#pragma once

#include <cstdint>

#include "common/base/ids.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"

namespace distro {

// Steps that a worker takes per round: local_steps, or 1 with a method that has none.
uint32_t StepsOfRound(const v1::RunConfig& config);

// The learning rate eta of a step of the run (docs/algorithm.md, "Schedule"): computed in f64,
// rounded to f32. Local step h of round t is step t * StepsOfRound + h; warm-up and end count in
// steps too. `config` is complete. `extension` is the run's newest; nullptr if it was never
// extended.
float LearningRate(const v1::RunConfig& config, uint64_t step,
                   const v1::Extension* extension = nullptr);

// Extends a run to `rounds`. `from` is the first round that was not open when it was decided;
// `before` is the newest extension until then, or nullptr. The new cosine begins at the rate that
// the schedule had there, so that the rate does not jump, and ends at min_learning_rate.
v1::Extension ExtendSchedule(const v1::RunConfig& config, const v1::Extension* before, RoundId from,
                             uint64_t rounds);

}  // namespace distro
