// Makes runs of the tiny model for a LocalAggregator.
#pragma once

#include <memory>
#include <string>

#include "bench/local/local_aggregator.h"
#include "tests/testing/worker/training.h"

namespace distro::worker {

// Their initial snapshots are one file, if they are of one TinyRun.
inline server::RunIdentity LocalRunOf(const testing::TinyRun& tiny, const v1::RunConfig& config) {
  return *server::MakeLocalRun(config, tiny.checkpoint_dir(), tiny.File("initial.safetensors"));
}

inline std::unique_ptr<server::LocalAggregator> Aggregate(const testing::TinyRun& tiny,
                                                          const v1::RunConfig& config) {
  return *server::LocalAggregator::Create(LocalRunOf(tiny, config));
}

}  // namespace distro::worker
