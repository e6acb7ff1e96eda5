// Synthetic workers of a run, many in one process, against an aggregator; load.py starts both and
// makes the table. They send updates of the run's method. The model has the given number of blocks
// and few parameters: with signs one tensor [64 * blocks, 1]; with deltas the one in its
// config.json, because the aggregator must know which tensors Muon steps. Prints one line of JSON
// per round (round_times.h) when the run is done.
//
//   aggregator_load --aggregator HOST:PORT --workers 32 --blocks 294177
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "bench/aggregator_load/load_worker.h"
#include "common/base/process/command_line.h"
#include "common/base/status_macros.h"
#include "common/client/channel.h"
#include "common/model/architecture.h"
#include "common/net/wire/proto_time.h"

namespace distro::bench {
namespace {

struct Options {
  std::string aggregator;
  int workers = 1;
  int first = 0;
  int64_t blocks = 294177;
  std::string recorded;
};

std::vector<Flag> Flags(Options* o) {
  return {
      {.name = "aggregator",
       .value = &o->aggregator,
       .help = "Address of the aggregator, which speaks plaintext."},
      {.name = "workers", .value = &o->workers, .help = "Workers of this process."},
      {.name = "first",
       .value = &o->first,
       .help = "Number of the first of them, where several processes make the run."},
      {.name = "blocks", .value = &o->blocks, .help = "Blocks of the run's model."},
      {.name = "recorded",
       .value = &o->recorded,
       .help =
           "Folder of updates that `convergence --record_updates` wrote; empty: random updates.",
       .takes = Takes::kFolder}};
}

absl::StatusOr<Manifest> MakeManifest(int64_t blocks, const v1::JoinResponse& joined) {
  if (joined.config().method() != v1::METHOD_DELTAS)
    return Manifest::Create({{"w", {kBlockSide * blocks, 1}}});
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<const Architecture> model,
                          ParseModelConfig(joined.model_config_json()));
  return Manifest::Create(model->Tensors());
}

absl::StatusOr<Layout> MakeLayout(int64_t blocks, const v1::JoinResponse& joined) {
  DISTRO_ASSIGN_OR_RETURN(Manifest manifest, MakeManifest(blocks, joined));
  const Sha256Digest hash = manifest.hash();
  DISTRO_ASSIGN_OR_RETURN(
      Layout layout,
      Layout::Create(std::move(manifest), static_cast<int>(joined.config().segment_blocks())));
  if (joined.manifest_hash() != std::string(hash.begin(), hash.end()) || layout.blocks() != blocks)
    return absl::InvalidArgumentError("--blocks: the run's model is another");
  return layout;
}

// The updates of the run's workers. Borrows the layout and `recorded`, which it fills.
absl::StatusOr<UpdateMaker> MakeUpdates(const Options& options, const v1::RunConfig& config,
                                        const Layout* layout, std::vector<SignUpdate>* recorded) {
  const int kept = static_cast<int>(config.kept_per_block());
  const std::string folder = options.recorded;
  if (config.method() == v1::METHOD_DELTAS) {
    if (!folder.empty())
      return absl::InvalidArgumentError("--recorded: are of signs, the run's method is deltas");
    return DeltaUpdates(layout, kept, LeastCap(config));
  }
  if (!folder.empty()) {
    DISTRO_ASSIGN_OR_RETURN(*recorded, ReadRecordedUpdates(folder, kept));
  }
  return SignUpdates(layout, kept, *recorded);
}

// Sends the workers' heartbeats in turn until all have ended; one that fails ends the others.
absl::Status Attend(const std::vector<std::unique_ptr<LoadWorker>>& workers,
                    absl::Duration interval) {
  absl::Status first_error;
  for (const auto& waited_for : workers) {
    while (!waited_for->AwaitEnd(interval))
      for (const auto& worker : workers) worker->Heartbeat();
    if (first_error.ok() && !waited_for->status().ok()) {
      first_error = waited_for->status();
      for (const auto& worker : workers) worker->Cancel();
    }
  }
  return first_error;
}

absl::StatusOr<int> Main(const Options& options) {
  LoadRun run{.aggregator = options.aggregator, .first = options.first};
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel,
                          OpenChannel({.aggregator = run.aggregator, .insecure = true}));
  const std::unique_ptr<Stub> control = v1::AggregatorService::NewStub(channel);
  run.control = control.get();
  const int count = options.workers;
  std::vector<v1::JoinResponse> joined;
  for (int i = 0; i < count; ++i) {
    DISTRO_ASSIGN_OR_RETURN(joined.emplace_back(), JoinRun(run.control, run.first + i));
  }
  const v1::RunConfig& config = joined[0].config();
  DISTRO_ASSIGN_OR_RETURN(const Layout layout, MakeLayout(options.blocks, joined[0]));
  std::vector<SignUpdate> recorded;
  DISTRO_ASSIGN_OR_RETURN(const UpdateMaker make, MakeUpdates(options, config, &layout, &recorded));
  const SyntheticUpdates updates(&layout, run.first, count, make);
  RoundTimes times(config.rounds(), layout.segments());
  run.layout = &layout;
  run.updates = &updates;
  run.times = &times;
  std::vector<std::unique_ptr<LoadWorker>> workers;
  for (int i = 0; i < count; ++i) {
    const int number = run.first + i;
    workers.push_back(std::make_unique<LoadWorker>(&run, number, joined[i], number == 0));
    workers.back()->Heartbeat();
  }
  DISTRO_RETURN_IF_ERROR(Attend(workers, FromProto(joined[0].heartbeat_interval())));
  std::cout << times.Json();
  return 0;
}

}  // namespace
}  // namespace distro::bench

int main(int argc, char** argv) {
  distro::bench::Options options;
  return distro::RunProgram(
      {.name = "aggregator_load",
       .summary =
           "plays many workers of a run against an aggregator, and prints a line of JSON a round.",
       .commands = {{.flags = distro::bench::Flags(&options),
                     .help = R"(Example:
  aggregator_load --aggregator HOST:PORT --workers 32 --blocks 294177)",
                     .run = [&options] { return distro::bench::Main(options); }}}},
      argc, argv);
}
