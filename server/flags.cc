#include "server/flags.h"

#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/process/command_line.h"

ABSL_FLAG(std::string, data_dir, "",
          "Folder of the run: configuration, initial model, round log. Required.");
ABSL_FLAG(
    std::string, run, "",
    "run.json of the run to create, or to go on with (docs/run_configuration.md). With --model.");
ABSL_FLAG(std::string, model, "", "Checkpoint folder with the initial model. With --run.");
ABSL_FLAG(std::string, listen, "127.0.0.1:7700",
          "gRPC address for workers and operators; port 0: a free one.");
ABSL_FLAG(std::string, http, "127.0.0.1:7701",
          "Address of /metrics, /healthz, /readyz and the status page; port 0: a free one.");
ABSL_FLAG(std::string, cert, "",
          "PEM file of the aggregator's certificate, chain included. Required without --insecure; "
          "read again when it changes.");
ABSL_FLAG(std::string, key, "", "PEM file of the certificate's key.");
ABSL_FLAG(std::string, ca, "",
          "PEM file of the CAs whose client certificates are believed (docs/security.md).");
ABSL_FLAG(std::string, tokens_file, "",
          "File of the tokens that are valid, as distroctl token new prints its lines; read again "
          "when it changes.");
ABSL_FLAG(bool, insecure, false,
          "Talk plaintext and authenticate nobody, instead of --cert, --key, --ca, --tokens_file.");
ABSL_FLAG(bool, reflection, false,
          "Answer gRPC's server reflection, to callers with any credential.");
ABSL_FLAG(absl::Duration, heartbeat_interval, absl::Seconds(2),
          "Time between a worker's heartbeats.");
ABSL_FLAG(absl::Duration, suspect_after, absl::ZeroDuration(),
          "Silence after which nobody waits for a worker until it is heard again; 0: 3 heartbeat "
          "intervals.");
ABSL_FLAG(absl::Duration, lease, absl::Seconds(30),
          "Silence after which a worker counts as gone; longer than --suspect_after.");
ABSL_FLAG(absl::Duration, drain_grace, absl::Seconds(30),
          "How long SIGTERM lets the open round go on, at most.");
ABSL_FLAG(uint64_t, ring_bytes, uint64_t{256} << 20,
          "Recent results kept in memory; who lags further reads the log.");
ABSL_FLAG(uint64_t, inflight_bytes_limit, uint64_t{1} << 30,
          "Bytes of update payloads that may be arriving at one time, of all workers together.");
ABSL_FLAG(uint64_t, worker_rate_limit, uint64_t{128} << 20,
          "Bytes a second that one worker may upload, on average over 4 seconds.");
ABSL_FLAG(int, max_streams, 4096, "Uploads, and subscriptions, that may be open at one time.");
ABSL_FLAG(absl::Duration, stall_timeout, absl::Seconds(30),
          "A transfer of which less than 16 KiB move within this time is ended.");
ABSL_FLAG(std::string, port_file, "",
          "Write the bound addresses to this file once both ports listen: grpc=HOST:PORT "
          "http=HOST:PORT.");
ABSL_FLAG(std::string, log_level, "info", "debug, info, warning or error.");

namespace distro::server {
namespace {

constexpr char kUsage[] =
    R"(holds a training run: workers upload to it, it combines and streams the result to all.

  distro-aggregator --data_dir DIR --run run.json --model CHECKPOINT_DIR --cert FILE --key FILE --tokens_file FILE
      Creates the run in DIR, or goes on with it.

  distro-aggregator --data_dir DIR --insecure
      Plaintext, on networks that are trusted. Goes on with the run in DIR; in an empty folder it waits for `distroctl run create`.

Then: distro-worker --aggregator HOST:PORT --data FILE --insecure. The status page is on http://127.0.0.1:7701/.
SIGINT or SIGTERM lets the open round end, drains and ends with 0; a second signal ends at once.

Exit codes: 0 asked to stop; 1 failure, such as a listening socket that fails: start it again; 2 a flag, file or configuration must be mended; 3 the data folder belongs to
another process or another run, or a newer aggregator has taken this one's place; 4 stored data is damaged.)";

}  // namespace

absl::Status ParseCommandLine(int argc, char** argv) {
  return NoArguments(ParseFlags(
      argc, argv,
      {.program = "distro-aggregator", .usage = kUsage, .flag_sources = {"server/flags.cc"}}));
}

absl::StatusOr<AggregatorOptions> OptionsFromFlags() {
  AggregatorOptions options = {.data_dir = absl::GetFlag(FLAGS_data_dir),
                               .run = absl::GetFlag(FLAGS_run),
                               .model = absl::GetFlag(FLAGS_model),
                               .listen = absl::GetFlag(FLAGS_listen),
                               .http = absl::GetFlag(FLAGS_http),
                               .cert = absl::GetFlag(FLAGS_cert),
                               .key = absl::GetFlag(FLAGS_key),
                               .ca = absl::GetFlag(FLAGS_ca),
                               .tokens_file = absl::GetFlag(FLAGS_tokens_file),
                               .insecure = absl::GetFlag(FLAGS_insecure),
                               .reflection = absl::GetFlag(FLAGS_reflection),
                               .heartbeat_interval = absl::GetFlag(FLAGS_heartbeat_interval),
                               .suspect_after = absl::GetFlag(FLAGS_suspect_after),
                               .lease = absl::GetFlag(FLAGS_lease),
                               .drain_grace = absl::GetFlag(FLAGS_drain_grace),
                               .ring_bytes = absl::GetFlag(FLAGS_ring_bytes),
                               .port_file = absl::GetFlag(FLAGS_port_file)};
  options.limits.inflight_bytes = absl::GetFlag(FLAGS_inflight_bytes_limit);
  options.limits.worker_bytes_per_second = absl::GetFlag(FLAGS_worker_rate_limit);
  options.limits.streams = absl::GetFlag(FLAGS_max_streams);
  options.limits.stall_timeout = absl::GetFlag(FLAGS_stall_timeout);
  DISTRO_RETURN_IF_ERROR(
      Annotate(ParseLogLevel(absl::GetFlag(FLAGS_log_level), &options.log_level), "--log_level"));
  DISTRO_RETURN_IF_ERROR(options.Validate());
  return options;
}

}  // namespace distro::server
