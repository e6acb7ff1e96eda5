// The schedule of a run: learning rate and samples of each round. Pure functions, used by the
// aggregator and by LocalAggregator, so that both produce the same run.
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

// The learning rate eta of a step of the run (docs/algorithm.md, "Schedule"): computed in f64,
// rounded to f32. With signs a round is a step; with deltas local step h of round t is step t *
// local_steps + h, and warm-up and end count in steps too. `config` is complete. `extension` is the
// run's newest; nullptr if it was never extended.
float LearningRate(const v1::RunConfig& config, uint64_t step,
                   const v1::Extension* extension = nullptr);

// The rates of the local steps of a deltas round [local_steps].
std::vector<float> LocalRates(const v1::RunConfig& config, RoundId round,
                              const v1::Extension* extension = nullptr);

// The step parameters in Open and in the record of a signs round. eta_lambda is float(double(eta) *
// weight_decay).
v1::StepParameters SignStep(const v1::RunConfig& config, RoundId round,
                            const v1::Extension* extension = nullptr);

// Extends a run to `rounds`. `from` is the first round that was not open when it was decided;
// `before` is the newest extension until then, or nullptr. The new cosine begins at the rate that
// the schedule had there, so that the rate does not jump, and ends at min_learning_rate.
v1::Extension ExtendSchedule(const v1::RunConfig& config, const v1::Extension* before, RoundId from,
                             uint64_t rounds);

// Gradients that a worker computes per round: local_steps with deltas, otherwise 1.
uint32_t StepsOfRound(const v1::RunConfig& config);

// Samples that a worker reads per round.
uint32_t SamplesOfRound(const v1::RunConfig& config);

// Assigns `samples` of the pool to each worker; the result is ascending by name. Workers take in
// the order of their names. If the pool has returned samples, another worker begins each `round`,
// so that samples which one worker never finishes go to others. `workers` must be ascending and
// distinct.
std::vector<v1::Slot> AssignSlots(absl::Span<const std::string> workers, uint64_t round,
                                  uint32_t samples, SamplePool* pool);

}  // namespace distro
