// Trains workers of a run on threads of the test, with real models, the real optimizer and any
// Exchange. For tests that compare whole runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/client/exchange/exchange.h"
#include "distro/v1/run.pb.h"
#include "tests/testing/scratch_folder.h"
#include "worker/plan/node_options.h"
#include "worker/train/summary.h"

namespace distro::testing {

// A tiny Llama of bytes with random weights, and a text to train it on, as files of a scratch
// folder.
class TinyRun {
 public:
  explicit TinyRun(uint64_t seed = 1);

  std::string checkpoint_dir() const { return folder_.File("model"); }
  std::string text_path() const { return folder_.File("text.txt"); }
  std::string File(const std::string& name) const { return folder_.File(name); }

  // A complete configuration for this run: short samples, K = 4, several segments of 8 blocks. A
  // test may change it and must then complete it again.
  v1::RunConfig Config(int workers, uint64_t rounds, uint32_t overlap) const;
  // The same of the deltas method, K = 8.
  v1::RunConfig DeltaConfig(int workers, uint64_t rounds, uint32_t local_steps) const;

 private:
  ScratchFolder folder_;
};

struct WorkerResult {
  absl::Status status;
  worker::TrainSummary summary;
  std::vector<uint32_t> momentum_bits;
};

struct WorkerSetup {
  std::string name;
  Exchange* exchange;  // borrowed
  std::string checkpoint_dir = {};
  uint64_t checkpoint_interval_rounds = 0;
  std::string state_dir = {};  // of a StateDir; empty: none
  uint64_t state_interval_rounds = 0;
  uint64_t incarnation = 0;  // 0: made from the name
  int micro_batch_samples = 2;
  worker::NodeOptions node = {};
  std::string data = {};         // empty: the run's text
  std::string public_data = {};  // with local data
  bool stateless = false;
  uint64_t updates = 0;
  bool leaves = true;  // false: ends without Leave, as a process that will be restarted
};

// Trains one worker to its end in the calling thread, with one Torch thread.
WorkerResult TrainWorker(const TinyRun& run, const WorkerSetup& setup);

// Trains all of them, one thread per worker.
std::vector<WorkerResult> TrainTogether(const TinyRun& run, absl::Span<const WorkerSetup> workers);

}  // namespace distro::testing
