#include "tools/archiver/flags.h"

#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/client/options/client_flags.h"
#include "common/client/probe/connection_fault.h"
#include "tools/archiver/exit_code.h"

namespace distro::tools {
namespace {

std::vector<Flag> Flags(ArchiverOptions* o) {
  return {
      {.name = "aggregator",
       .value = &o->channel.aggregator,
       .help = "Address of the aggregator, host:port. Required without --invite."},
      {.name = "data_dir",
       .value = &o->data_dir,
       .help =
           "Folder for the archiver's own copy of the parameters, from which it continues after "
           "a restart. Required.",
       .takes = Takes::kFolder},
      {.name = "publish_dir",
       .value = &o->publish.dir,
       .help =
           "Publish the model here, in folders round-N of the Hugging Face layout. Empty: do not.",
       .takes = Takes::kFolder},
      {.name = "keep",
       .value = &o->publish.keep,
       .help = "Number of newest folders to keep in --publish_dir; 0: all."},
      {.name = "publish_command",
       .value = &o->publish.command,
       .help = "Shell command to run after each published folder, for example to upload it. "
               "DISTRO_FOLDER, DISTRO_ROUND, DISTRO_RUN and DISTRO_STATE_HASH are set."},
      {.name = "snapshot_interval_rounds",
       .value = &o->snapshot_interval_rounds,
       .help = "Rounds between snapshots and published folders; 0: whenever the results since the "
               "last one have as many bytes as the parameters."},
      {.name = "upload_snapshots",
       .value = &o->upload_snapshots,
       .help = "Upload snapshots to the aggregator, so that workers that join start near the head "
               "and old rounds can be deleted."},
      {.name = "threads",
       .value = &o->threads,
       .help = "Threads that replay; more are faster up to the number of cores."},
      {.name = "metrics_file",
       .value = &o->metrics_file,
       .help = "File to which one JSON line per round is appended. Default: metrics.jsonl in "
               "--data_dir.",
       .takes = Takes::kFile},
      {.name = "once",
       .value = &o->once,
       .help = "Catch up with the round that is open at the start, save, publish, and end."},
      ConnectTimeoutFlag(&o->connect_timeout),
      MirrorsFlag(&o->mirrors),
      {.name = "http",
       .value = &o->http,
       .help = "Address of /metrics, /healthz and /readyz; port 0: a free one, logged."},
      LogLevelFlag(&o->log_level)};
}

std::vector<ExitCodeHelp> ExitCodes() {
  std::vector<ExitCodeHelp> codes = {
      {kArchiverDone, "the run is done, --once is done, or a signal came"},
      {kArchiverFailed, "failure, such as a full disk; the last log line says which"},
      {kArchiverUsage, "a flag, file or configuration must be fixed"},
      {kArchiverRefused, "the folder belongs to another run or is in use"},
      {kArchiverDiverged, "the log does not continue the newest snapshot"},
      {kArchiverVersion, "the folder or the run is of a newer version"},
      {kArchiverCredentials, "credentials refused"}};
  for (const FaultRule& rule : FaultRules())
    if (rule.exit_code != 0) codes.push_back({rule.exit_code, std::string(rule.summary)});
  return codes;
}

constexpr char kHelp[] = R"(Examples:
  distro-archiver --aggregator HOST:PORT --data_dir DIR --ca FILE --token_file FILE
      Holds the run's parameters, compares the state hash of every round with the workers', and uploads
      verified snapshots to the aggregator, so that joiners start near the head and old rounds can be
      deleted. Continues where it was after any restart.

  distro-archiver ... --publish_dir DIR --keep 3
      Also publishes the model as DIR/round-N, in the Hugging Face layout.

  distro-archiver ... --publish_dir DIR --publish_command 'rclone copy "$DISTRO_FOLDER" remote:models/'
      Also copies each folder elsewhere.

  distro-archiver ... --once
      Catches up and ends, for a cron job or to look at a run.

One archiver per run is enough; its --threads must replay a round in less time than a round takes
(docs/archiver.md). Its log and metrics show when it falls behind. SIGINT, SIGTERM or SIGHUP saves
its copy and ends; a second SIGINT or SIGTERM ends at once.)";

}  // namespace

Program ArchiverProgram(ArchiverOptions* options, std::function<absl::StatusOr<int>()> run) {
  return {.name = "distro-archiver",
          .summary = "follows a run without training: replays its log bit for bit, on CPUs.",
          .commands = {{.flags = WithClientFlags(Flags(options), &options->channel),
                        .run = [options, run = std::move(run)]() -> absl::StatusOr<int> {
                          DISTRO_RETURN_IF_ERROR(options->TakeInvite(absl::Now()));
                          DISTRO_RETURN_IF_ERROR(options->Validate());
                          return run();
                        }}},
          .help = kHelp,
          .exit_codes = ExitCodes(),
          .exit_code = ArchiverExitCodeFor};
}

}  // namespace distro::tools
