// The schedule of a run: the learning rate and the samples of each round. Pure functions; the
// aggregator and the exchange that runs in one process use them, so that both give the same run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/run/sample_pool.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"

namespace distro {

// eta of docs/algorithm.md, "Schedule", of a step of the run: computed in f64, rounded to f32. With
// signs a round is a step; with deltas local step h of round t is step t * local_steps + h, and
// warm-up and end count in steps too. `config` is complete. `extension`: the newest of the run;
// null while it has the rounds that it was created with.
float LearningRate(const v1::RunConfig& config, uint64_t step,
                   const v1::Extension* extension = nullptr);

// Those of the local steps of a round of deltas [local_steps].
std::vector<float> LocalRates(const v1::RunConfig& config, RoundId round,
                              const v1::Extension* extension = nullptr);

// Everything that Open and the record of a round of signs say about the step. eta_lambda is
// float(double(eta) * weight_decay).
v1::StepParameters SignStep(const v1::RunConfig& config, RoundId round,
                            const v1::Extension* extension = nullptr);

// The extension of a run to `rounds`, decided when no round from `from` on was open; `before` is
// the newest until then, or null. Its cosine begins at the rate that the schedule until then has
// there, so that no rate jumps, and ends at min_learning_rate.
v1::Extension ExtendSchedule(const v1::RunConfig& config, const v1::Extension* before, RoundId from,
                             uint64_t rounds);

// Gradients of a worker's round: local_steps with deltas, else 1.
uint32_t StepsOfRound(const v1::RunConfig& config);

// Samples of all of them.
uint32_t SamplesOfRound(const v1::RunConfig& config);

// Gives each worker `samples` of the pool; ascending by name. Who comes first is by name, but where
// samples have come back it is another one each `round`, so that what one worker never gets done
// goes to others. `workers` must be ascending and distinct.
std::vector<v1::Slot> AssignSlots(absl::Span<const std::string> workers, uint64_t round,
                                  uint32_t samples, SamplePool* pool);

}  // namespace distro
