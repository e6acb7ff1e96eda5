#include "tools/distroctl/bench_link.h"

#include "common/base/status_macros.h"
#include "common/client/link_bench.h"
#include "common/client/link_report.h"
#include "tools/distroctl/connection.h"

namespace distro::tools {
namespace {

absl::StatusOr<Report> BenchLink(const Arguments& arguments, const Console& console) {
  const LinkBenchOptions options = {.channel = ChannelOptionsOf(arguments),
                                    .update_bytes = arguments.Count("update_bytes"),
                                    .result_bytes = arguments.Count("result_bytes"),
                                    .transfer_limit = arguments.Duration("transfer_limit")};
  DISTRO_ASSIGN_OR_RETURN(const LinkMeasurement measured, MeasureLink(options, console.progress));
  Report report = {.text = LinkText(measured), .json = LinkJson(measured)};
  if (PredictLink(measured).straggler)
    report.verdict = absl::AbortedError("a worker on this link would be the straggler");
  return report;
}

}  // namespace

Command BenchLinkCommand() {
  return {
      .name = "bench-link",
      .arguments = "HOST:PORT",
      .summary = "Measures the link with payloads of the run's size; would it be the straggler?",
      .flags = WithClientFlags(
          {{.name = "update_bytes",
            .value = Value::kCount,
            .help =
                "Payload of an update; 0: the run's, or that of 1.2 B parameters where there is "
                "no run.",
            .default_value = "0"},
           {.name = "result_bytes",
            .value = Value::kCount,
            .help = "Payload of a result; 0: the mean of the run's, or as above with 32 workers.",
            .default_value = "0"},
           {.name = "transfer_limit",
            .value = Value::kDuration,
            .help = "Each of the three steps ends then, and counts what has moved. 100ms to 60s.",
            .default_value = "20s"}}),
      .help =
          R"(Run it on the machine that shall train, before a GPU is committed. It moves an update up, a result down, then both at
once, each on a connection of its own as a worker does, and takes the slower rates. A round on this link takes at least
the longer of upload and download (their sum with overlap 0). When that is more than the run's rounds take now, the others
would wait for this worker: exit code 5. A run that trains meanwhile shares the aggregator's link: the figures are what a
worker would get. Role worker, archiver or admin; distro-worker bench-link does the same.

Example:
  distroctl bench-link aggregator.example:7700 --ca ca.pem --token_file w7.token)",
      .run = BenchLink};
}

}  // namespace distro::tools
