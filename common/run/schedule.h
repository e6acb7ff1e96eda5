// What the aggregator decides about a round before it opens: learning rate and samples. Pure
// functions, used by the aggregator and by the exchange that runs in one process, so that both give
// the same run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"

namespace distro {

// eta_t of docs/algorithm.md, "Schedule": computed in f64, rounded to f32. `config` is complete.
float LearningRate(const v1::RunConfig& config, RoundId round);

// Everything that Open and the record say about the step. eta_lambda is float(double(eta) *
// weight_decay).
v1::StepParameters StepOfRound(const v1::RunConfig& config, RoundId round);

// Gives each worker samples_per_worker consecutive sample indices from *next_sample on, in the
// order of the names, and moves *next_sample behind them. `workers` must be ascending and distinct.
std::vector<v1::Slot> AssignSlots(absl::Span<const std::string> workers,
                                  uint32_t samples_per_worker, uint64_t* next_sample);

}  // namespace distro
