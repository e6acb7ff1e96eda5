// A tiny run of two workers on an aggregator that is killed, from its creation to its end, and its
// results.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/client/channel.h"
#include "tests/testing/worker/training.h"

namespace distro::testing {

inline constexpr uint64_t kKilledRunRounds = 6;

struct KilledRun {
  std::vector<std::string> killed;  // "killed at N: KIND PATH"
  std::string log;                  // of the aggregator
  std::vector<WorkerResult> workers;
  std::string state;  // state hash after a replay of the log
};

// Runs on its own thread while the workers train.
using Meanwhile = std::function<void(const ChannelOptions& channel, const std::string& data_dir)>;

// Trains with the kills of KilledAggregator. No round closes without both workers.
KilledRun TrainWhileKilled(const std::vector<std::string>& points, const Meanwhile& meanwhile = {});

// Expects the same parameters and momentum, bit for bit, and that every round was applied.
void ExpectSameRun(const KilledRun& run, const KilledRun& undisturbed);

// Runs `work` for 0, 1, 2, ... until it returns false or fails, several in parallel, because they
// mostly wait.
void ForEachInLanes(const std::function<bool(size_t)>& work);

}  // namespace distro::testing
