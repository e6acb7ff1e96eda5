// The samples of each round of a run. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/run/sample_pool.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"

namespace distro {

// Samples that a worker reads per round.
uint32_t SamplesOfRound(const v1::RunConfig& config);

// Assigns `samples` of the pool to each worker; the result is ascending by name. Workers take in
// the order of their names. If the pool has returned samples, another worker begins each `round`,
// so that samples which one worker never finishes go to others. `workers` must be ascending and
// distinct.
std::vector<v1::Slot> AssignSlots(absl::Span<const std::string> workers, uint64_t round,
                                  uint32_t samples, SamplePool* pool);

}  // namespace distro
