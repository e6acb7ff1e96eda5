#include "tests/testing/worker/training.h"

#include <bit>
#include <optional>
#include <thread>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/model/checkpoint/hf_folder.h"
#include "common/model/decoder/decoder.h"
#include "common/model/init_weights.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"
#include "common/run/run_config.h"
#include "gtest/gtest.h"
#include "worker/data/token_file.h"
#include "worker/model/model.h"
#include "worker/state/state_dir.h"
#include "worker/train/node_workload.h"
#include "worker/train/training_run.h"

namespace distro::testing {
namespace {

Decoder TinyLlama() {
  return Decoder({.hidden_size = 64,
                  .layers = 2,
                  .heads = 2,
                  .kv_heads = 1,
                  .head_dim = 32,
                  .intermediate_size = 96,
                  .vocab_size = 256,
                  .max_positions = 32,
                  .rms_norm_eps = 1e-5f,
                  .rope = {.theta = 10000},
                  .tied_embeddings = false,
                  .initializer_range = 0.02f});
}

// Words of a small vocabulary: a text that a tiny model can learn something about.
std::string Text(uint64_t seed) {
  const char* const words[] = {"the ", "cat ", "sat ", "on ", "a ", "mat ", "and ", "ran "};
  std::string text;
  for (uint64_t i = 0; text.size() < 40000; ++i) text.append(words[SplitMix64(seed, i) % 8]);
  return text;
}

void WriteModel(const std::string& dir, uint64_t seed) {
  const Decoder model = TinyLlama();
  const Layout layout = *Layout::Create(*Manifest::Create(model.Tensors()), kDefaultSegmentBlocks);
  TensorBuffer weights(layout);
  ASSERT_TRUE(InitWeights(model, layout, seed, &weights).ok());
  const absl::Status status = WriteCheckpointFolder(dir, model.ConfigJson(), layout, weights);
  ASSERT_TRUE(status.ok()) << status;
}

std::vector<uint32_t> Bits(const TensorPieces& tensors) {
  std::vector<uint32_t> bits;
  for (const auto& pieces : tensors) {
    for (const auto& piece : pieces) {
      for (const float value : piece) bits.push_back(std::bit_cast<uint32_t>(value));
    }
  }
  return bits;
}

}  // namespace

TinyRun::TinyRun(uint64_t seed) {
  WriteModel(checkpoint_dir(), seed);
  EXPECT_TRUE(WriteFileAtomically(text_path(), Text(seed)).ok());
}

v1::RunConfig TinyRun::Config(int workers, uint64_t rounds, uint32_t overlap) const {
  v1::RunConfig config;
  config.set_name("tiny");
  config.set_method(v1::METHOD_SIGNS);
  config.set_seed(3);
  config.set_rounds(rounds);
  config.set_peak_learning_rate(2e-3);
  config.set_warmup_rounds(1);
  config.set_beta(0.9);
  config.set_kept_per_block(4);
  config.set_segment_blocks(8);
  config.set_sequence_length(16);
  config.set_samples_per_worker(4);
  config.set_evaluation_samples(32);
  config.set_start_workers(workers);
  config.set_min_workers(1);
  config.set_overlap(overlap);
  return *CompleteRunConfig(config);
}

v1::RunConfig TinyRun::DeltaConfig(int workers, uint64_t rounds, uint32_t local_steps) const {
  v1::RunConfig config = Config(workers, rounds, /*overlap=*/0);
  config.set_method(v1::METHOD_DELTAS);
  config.clear_beta();
  config.clear_max_workers();
  config.set_kept_per_block(8);
  config.set_local_steps(local_steps);
  return *CompleteRunConfig(config);
}

WorkerResult TrainWorker(const TinyRun& run, const WorkerSetup& setup) {
  WorkerResult result;
  Log log(LogLevel::kWarning);
  worker::PhaseClock phases(Clock::Real());
  std::unique_ptr<worker::StateDir> state;
  if (!setup.state_dir.empty()) {
    auto opened = worker::StateDir::Open(setup.state_dir, &log);
    if (!opened.ok()) return {.status = opened.status(), .summary = {}, .momentum_bits = {}};
    state = *std::move(opened);
  }
  const auto open = [](const std::string& path) {
    return worker::OpenTokens(path, worker::TokenFormat::kAuto);
  };
  const absl::StatusOr<worker::TokenSource> tokens =
      open(setup.data.empty() ? run.text_path() : setup.data);
  std::optional<worker::TokenSource> public_tokens;
  if (!setup.public_data.empty()) public_tokens = *open(setup.public_data);
  if (!tokens.ok()) return {.status = tokens.status(), .summary = {}, .momentum_bits = {}};
  const worker::TrainerOptions options = {
      .worker = setup.name,
      .incarnation =
          setup.incarnation != 0 ? setup.incarnation : std::hash<std::string>()(setup.name) | 1,
      .micro_batch_samples = setup.micro_batch_samples,
      .stateless = setup.stateless,
      .updates = setup.updates,
      .node = setup.node,
      .checkpoint_dir = setup.checkpoint_dir,
      .checkpoint_interval_rounds = setup.checkpoint_interval_rounds,
      .state_interval_rounds = setup.state_interval_rounds};
  const absl::StatusOr<std::string> fingerprint =
      (public_tokens.has_value() ? *public_tokens : *tokens).Fingerprint();
  if (!fingerprint.ok())
    return {.status = fingerprint.status(), .summary = {}, .momentum_bits = {}};
  worker::NodeWorkload workload(
      options, {.tokens = &*tokens,
                .public_tokens = public_tokens.has_value() ? &*public_tokens : nullptr,
                .data_fingerprint = *fingerprint,
                .phases = &phases,
                .log = &log});
  const absl::StatusOr<std::unique_ptr<worker::TrainingRun>> training = worker::TrainingRun::Begin(
      options, &workload,
      {.exchange = setup.exchange, .phases = &phases, .log = &log, .state = state.get()},
      [](const worker::TrainSummary&) {});
  if (!training.ok()) return {.status = training.status(), .summary = {}, .momentum_bits = {}};
  result.status = (*training)->Train();
  result.summary = (*training)->summary();
  if (const auto kept = workload.learner()->kept(); kept.ok())
    result.momentum_bits = Bits(kept->elements[0]);
  if (setup.leaves) setup.exchange->Leave("done");
  return result;
}

std::vector<WorkerResult> TrainTogether(const TinyRun& run, absl::Span<const WorkerSetup> workers) {
  std::vector<WorkerResult> results(workers.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < workers.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = TrainWorker(run, workers[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

}  // namespace distro::testing
