#include "server/options/flags.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"

namespace distro::server {
namespace {

std::vector<Flag> Flags(AggregatorOptions* o) {
  return {
      {.name = "data_dir",
       .value = &o->data_dir,
       .help = "Folder of the run: configuration, initial model, round log. Required.",
       .takes = Takes::kFolder},
      {.name = "log",
       .value = &o->log_url,
       .help = "s3://BUCKET/PREFIX that keeps the run, of which --data_dir is then a copy "
               "(docs/bucket.md)."},
      {.name = "standby",
       .value = &o->standby,
       .help = "Wait until no other aggregator serves the run of --log, and serve it then."},
      {.name = "takeover_after",
       .value = &o->takeover_after,
       .help = "Silence of the serving aggregator after which one with --standby takes over; the "
               "same for both."},
      {.name = "run",
       .value = &o->run,
       .help = "run.json of the run to create, or to go on with (docs/run_configuration.md). With "
               "--model.",
       .takes = Takes::kFile},
      {.name = "model",
       .value = &o->model,
       .help = "Checkpoint folder with the initial model. With --run.",
       .takes = Takes::kFolder},
      {.name = "listen",
       .value = &o->listen,
       .help = "gRPC address for workers and operators; port 0: a free one. 0.0.0.0 is every "
               "address of IPv4, [::] of IPv6 as well."},
      {.name = "http",
       .value = &o->http,
       .help = "Address of /metrics, /healthz, /readyz and the status page; port 0: a free one."},
      {.name = "objects",
       .value = &o->objects,
       .help =
           "Address of results and snapshots as objects, for mirrors (docs/deploy.md); port 0: a "
           "free one. Everyone who reaches it can read them."},
      {.name = "mirrors",
       .value = &o->mirrors,
       .help = "URLs of mirrors of --objects, separated by commas: workers fetch results and "
               "snapshots there, and from this program if none of them works."},
      {.name = "cert",
       .value = &o->cert,
       .help = "PEM file of the aggregator's certificate, chain included. Required without "
               "--insecure; read again when it changes.",
       .takes = Takes::kFile},
      {.name = "key",
       .value = &o->key,
       .help = "PEM file of the certificate's key.",
       .takes = Takes::kFile},
      {.name = "ca",
       .value = &o->ca,
       .help = "PEM file of the CAs whose client certificates are accepted (docs/security.md).",
       .takes = Takes::kFile},
      {.name = "tokens_file",
       .value = &o->tokens_file,
       .help = "File of the tokens that are valid, as distroctl token new prints its lines; read "
               "again when it changes.",
       .takes = Takes::kFile},
      {.name = "insecure",
       .value = &o->insecure,
       .help = "Talk plaintext and authenticate nobody, instead of --cert, --key, --ca, "
               "--tokens_file."},
      {.name = "reflection",
       .value = &o->reflection,
       .help = "Answer gRPC's server reflection, to callers with any credential."},
      {.name = "heartbeat_interval",
       .value = &o->heartbeat_interval,
       .help = "Time between a worker's heartbeats."},
      {.name = "suspect_after",
       .value = &o->suspect_after,
       .help = "Silence after which rounds do not wait for a worker until it is heard again; 0: 3 "
               "heartbeat intervals."},
      {.name = "lease",
       .value = &o->lease,
       .help = "Silence after which a worker counts as gone; longer than --suspect_after."},
      {.name = "drain_grace",
       .value = &o->drain_grace,
       .help = "Longest time that the open round may continue after SIGTERM."},
      {.name = "ring_bytes",
       .value = ByteSize{&o->ring_bytes},
       .help = "Recent results kept in memory; subscribers that are further behind read the log."},
      {.name = "inflight_bytes_limit",
       .value = ByteSize{&o->limits.inflight_bytes},
       .help = "Limit of the bytes of unfinished uploads in memory, of all workers together."},
      {.name = "worker_rate_limit",
       .value = ByteSize{&o->limits.worker_bytes_per_second},
       .help = "Bytes a second that one worker may upload, on average over 4 seconds."},
      {.name = "max_streams",
       .value = &o->limits.streams,
       .help = "Limit of the open uploads, and of the open subscriptions."},
      {.name = "stall_timeout",
       .value = &o->limits.stall_timeout,
       .help =
           "A transfer that moves less than 16 KiB within this time is ended. A frame (128 KiB) "
           "counts when it is whole."},
      {.name = "port_file",
       .value = &o->port_file,
       .help = "Write the bound addresses to this file once both ports listen: grpc=HOST:PORT "
               "http=HOST:PORT.",
       .takes = Takes::kFile},
      LogLevelFlag(&o->log_level)};
}

constexpr char kHelp[] =
    R"(Examples:
  distro-aggregator --data_dir DIR --run run.json --model CHECKPOINT_DIR --cert FILE --key FILE --tokens_file FILE
      Creates the run in DIR, or continues it.

  distro-aggregator --data_dir DIR --insecure
      Plaintext, on networks that are trusted. Continues the run in DIR; in an empty folder it waits for
      `distroctl run create`.

Then: distro-worker --aggregator HOST:PORT --data FILE --insecure. The status page is on http://127.0.0.1:7701/.
SIGINT or SIGTERM lets the open round end, drains and ends with 0; a second signal ends at once.
SIGHUP does not end it: certificates and tokens are read again whenever their files change.)";

}  // namespace

int ExitCode(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
      return 2;
    case absl::StatusCode::kFailedPrecondition:
      return 3;
    case absl::StatusCode::kDataLoss:
      return 4;
    default:
      return 1;
  }
}

Program AggregatorProgram(AggregatorOptions* options, std::function<absl::StatusOr<int>()> run) {
  return {.name = "distro-aggregator",
          .summary =
              "serves a training run: combines the updates of its workers and streams the results "
              "to all.",
          .commands = {{.flags = Flags(options),
                        .run = [options, run = std::move(run)]() -> absl::StatusOr<int> {
                          DISTRO_RETURN_IF_ERROR(options->Validate());
                          return run();
                        }}},
          .help = kHelp,
          .exit_codes = {{0, "asked to stop"},
                         {1, "failure, such as a listening socket that fails: start it again"},
                         {2, "a flag, file or configuration must be fixed"},
                         {3,
                          "the data folder belongs to another process, another run or a newer "
                          "version, or a newer aggregator has replaced this one"},
                         {4, "stored data is damaged"}},
          .exit_code = ExitCode};
}

}  // namespace distro::server
