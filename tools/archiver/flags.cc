#include "tools/archiver/flags.h"

#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/client/client_flags.h"
#include "common/process/command_line.h"

ABSL_FLAG(std::string, aggregator, "", "Address of the aggregator, host:port. Required.");
ABSL_FLAG(std::string, data_dir, "",
          "Folder of the archiver's own copy of the parameters, with which it goes on after a "
          "restart. Required.");
ABSL_FLAG(std::string, publish_dir, "",
          "Publish the model here, in folders round-N of the Hugging Face layout. Empty: not.");
ABSL_FLAG(int, keep, 3, "Newest folders of --publish_dir that stay; 0: all.");
ABSL_FLAG(uint64_t, snapshot_interval_rounds, 0,
          "Rounds between snapshots and published folders; 0: as soon as the results since the "
          "last one have as many "
          "bytes as the parameters.");
ABSL_FLAG(bool, upload_snapshots, true,
          "Upload snapshots to the aggregator: workers that join then start near the head, and old "
          "rounds are dropped.");
ABSL_FLAG(int, threads, 1, "Threads that replay; more are faster up to the number of cores.");
ABSL_FLAG(bool, once, false, "Catch up with the round that is open now, save, publish, and end.");
ABSL_FLAG(std::string, http, "127.0.0.1:0",
          "Address of /metrics, /healthz and /readyz; port 0: a free one, logged.");
ABSL_FLAG(std::string, log_level, "info", "debug, info, warning or error.");

namespace distro::tools {
namespace {

constexpr char kUsage[] = R"(follows a run without training: replays its log bit for bit, on CPUs.

  distro-archiver --aggregator HOST:PORT --data_dir DIR --ca FILE --token_file FILE
      Holds the run's parameters, compares the state hash of every round with the workers', and uploads verified snapshots
      to the aggregator, so that joiners start near the head and old rounds can be dropped. Goes on where it was after a
      restart, however it ended.

  distro-archiver ... --publish_dir DIR --keep 3
      Also publishes the model as DIR/round-N, in the Hugging Face layout.

  distro-archiver ... --once
      Catches up and ends, for a cron job or to look at a run.

One archiver a run is enough; its --threads must replay a round in less time than one takes (docs/archiver.md). It says in its
log and metrics when it falls behind. SIGINT or SIGTERM saves its copy and ends; a second signal ends at once.

Exit codes: 0 the run is done, --once is done, or a signal came; 1 failure; 2 a flag, file or configuration must be
mended; 3 the folder is of another run or in use; 5 the log does not continue the newest snapshot; 8 credentials refused.)";

}  // namespace

absl::Status ParseArchiverCommandLine(int argc, char** argv) {
  return NoArguments(ParseFlags(argc, argv,
                                {.program = "distro-archiver",
                                 .usage = kUsage,
                                 .flag_sources = {"archiver/flags.cc", kClientFlagsSource}}));
}

absl::StatusOr<ArchiverOptions> ArchiverOptionsFromFlags() {
  ArchiverOptions options;
  options.channel = ChannelOptionsFromFlags(absl::GetFlag(FLAGS_aggregator));
  options.data_dir = absl::GetFlag(FLAGS_data_dir);
  options.publish.dir = absl::GetFlag(FLAGS_publish_dir);
  options.publish.keep = absl::GetFlag(FLAGS_keep);
  options.snapshot_interval_rounds = absl::GetFlag(FLAGS_snapshot_interval_rounds);
  options.upload_snapshots = absl::GetFlag(FLAGS_upload_snapshots);
  options.threads = absl::GetFlag(FLAGS_threads);
  options.once = absl::GetFlag(FLAGS_once);
  options.http = absl::GetFlag(FLAGS_http);
  DISTRO_RETURN_IF_ERROR(
      Annotate(ParseLogLevel(absl::GetFlag(FLAGS_log_level), &options.log_level), "--log_level"));
  DISTRO_RETURN_IF_ERROR(options.Validate());
  return options;
}

}  // namespace distro::tools
