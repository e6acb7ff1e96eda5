// The archiver: follows a run's log without taking part, holds its parameters bit for bit, and
// gives them away: state hashes and verified snapshots to the aggregator, Hugging Face folders to
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
#include "common/client/client_state.h"
#include "common/client/first_contact.h"
#include "common/exchange/transfer_meter.h"
#include "common/process/shell_command.h"
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
  // process works in the data folder. The statuses of OpenChannel.
  static absl::StatusOr<std::unique_ptr<Archiver>> Create(ArchiverOptions options,
                                                          ArchiverMetrics* metrics, Log* log,
                                                          const Clock* clock);

  // Follows until the run is done, until the head with `once`, or until Stop(); then its copy is
  // saved. OK in all three cases. FailedPrecondition "other_run": the folder is of another run.
  // "diverged", "pruned": starting again from the newest snapshot did not help. Otherwise what
  // cannot be mended from here.
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
  // The aggregator's run. Of the run of `held`, which may be nullptr: only an answer of its epoch
  // or a later one. Epochs of two runs do not compare: who serves another run may have a lower one.
  absl::StatusOr<v1::GetRunResponse> AwaitRunAfter(const ArchiveState* held);
  // From the beginning of a replay to its end; adds what it replayed.
  absl::Status Follow(uint64_t* replayed);

  // Constant after construction.
  const ArchiverOptions options_;
  ArchiverMetrics* const metrics_;
  Log* const log_;
  const Clock* const clock_;
  FirstContact contact_;  // of the thread that runs
  ClientState state_;
  TransferMeter meter_;
  std::unique_ptr<AggregatorClient> client_;
  std::unique_ptr<ArchiveFolder> folder_;
  std::unique_ptr<RoundLines> lines_;
  std::unique_ptr<ShellCommand> publish_command_;  // nullptr: there is none
};

}  // namespace distro::tools
