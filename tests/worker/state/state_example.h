// A small optimizer with a pending update, and the rest of a worker's state.
#pragma once

#include "common/model/layout/layout.h"
#include "tests/testing/worker/sharded_optimizer.h"
#include "worker/state/state_file.h"

namespace distro::worker {

struct StateExample {
  explicit StateExample(int ranks = 1) : optimizer(&layout, ranks) {}

  Layout layout = *Layout::Create(*Manifest::Create({{"a", {3, 2}}, {"b", {5}}}), 1);
  testing::ShardedOptimizer optimizer;
  WorkerState state{.run_id = "run-1",
                    .worker = "w",
                    .epoch = EpochId(6),
                    .next_round = RoundId(9),
                    .senders = {11, 12},
                    .pending_loss = 2.5,
                    .pending_steps = 5,
                    .pending_samples = 48};

  const Optimizer& shards() const { return optimizer.optimizer(); }

  // Makes the momentum non-zero, and a pending update of round 9.
  void Step() {
    TensorBuffer gradient(layout);
    for (int i = 0; i < gradient.tensors(); ++i) {
      for (size_t j = 0; j < gradient.tensor(i).size(); ++j)
        gradient.tensor(i)[j] = static_cast<float>(i + 1) / static_cast<float>(j + 2);
    }
    v1::StepParameters step;
    step.set_eta_bits(0x3f000000);
    step.set_beta(0.9f);
    step.set_clip_norm(1e6f);
    step.set_kept_per_block(2);
    optimizer.Compress(RoundId(9), step, gradient);
  }
};

}  // namespace distro::worker
