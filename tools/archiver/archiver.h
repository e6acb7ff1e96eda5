// The archiver: follows a run's log without training, holds the parameters bit for bit, and
// distributes them: state hashes and verified snapshots to the aggregator, Hugging Face folders to
// people (docs/archiver.md).
//
// Run() is for one thread; Stop() may come from any.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/process/shell_command.h"
#include "common/client/client_state.h"
#include "common/client/exchange/transfer_meter.h"
#include "common/client/first_contact.h"
#include "tools/archiver/aggregator_client.h"
#include "tools/archiver/archive.h"
#include "tools/archiver/archive_folder.h"
#include "tools/archiver/metrics.h"
#include "tools/archiver/options.h"
#include "tools/archiver/round_lines.h"

namespace distro::tools {

class Archiver {
 public:
  // `options` are validated; `metrics`, `log` and `clock` are borrowed. FailedPrecondition: another
  // process uses the data folder. The statuses of OpenChannel, and for the folders those of
  // TryOutputFolder.
  static absl::StatusOr<std::unique_ptr<Archiver>> Create(ArchiverOptions options,
                                                          ArchiverMetrics* metrics, Log* log,
                                                          const Clock* clock);

  // Follows until the run is done, the head is reached (with `once`), or Stop(); then saves its
  // copy and returns OK. FailedPrecondition "other_run": the folder belongs to another run;
  // "diverged", "pruned": a new start from the newest snapshot did not help. Otherwise an error
  // that the archiver cannot fix.
  absl::Status Run();
  void Stop() {
    state_.End(absl::CancelledError("stopped"));
    if (publish_command_ != nullptr) publish_command_->Stop();
  }

 private:
  Archiver(ArchiverOptions options, ArchiverMetrics* metrics, Log* log, const Clock* clock)
      : options_(std::move(options)),
        metrics_(metrics),
        log_(log),
        clock_(clock),
        contact_(options_.channel, PatienceOf(options_.connect_timeout), log, clock) {}
  // Waits for the aggregator's run. If it is the run of `held`, which may be nullptr, accepts only
  // an answer of its epoch or a later one. Epochs of different runs do not compare: another run may
  // have a lower one.
  absl::StatusOr<v1::GetRunResponse> AwaitRunAfter(const ArchiveState* held);
  // One replay, from its snapshot to its end. Adds the number of rounds that it replayed.
  absl::Status Follow(uint64_t* replayed);

  // Constant after construction.
  const ArchiverOptions options_;
  ArchiverMetrics* const metrics_;
  Log* const log_;
  const Clock* const clock_;
  FirstContact contact_;  // of the thread in Run()
  ClientState state_;
  TransferMeter meter_;
  std::unique_ptr<AggregatorClient> client_;
  std::unique_ptr<ArchiveFolder> folder_;
  std::unique_ptr<RoundLines> lines_;
  std::unique_ptr<ShellCommand> publish_command_;  // optional
};

}  // namespace distro::tools
