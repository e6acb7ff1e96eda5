#include "tools/distroctl/bench_link.h"

#include <memory>

#include "common/base/status_macros.h"
#include "common/client/link_bench.h"
#include "common/client/link_report.h"
#include "tools/distroctl/admin.h"

namespace distro::tools {
namespace {

absl::StatusOr<Report> BenchLink(const LinkBenchOptions& options,
                                 const std::function<void(absl::string_view)>& progress) {
  DISTRO_ASSIGN_OR_RETURN(const LinkMeasurement measured, MeasureLink(options, progress));
  Report report = {.text = LinkText(measured), .json = LinkJson(measured)};
  if (PredictLink(measured).straggler)
    report.verdict = absl::AbortedError("a worker on this link would be the straggler");
  return report;
}

}  // namespace

Command BenchLinkCommand(const Console* console) {
  const auto options = std::make_shared<LinkBenchOptions>();
  return {
      .name = "bench-link",
      .arguments = {{"HOST:PORT", &options->channel.aggregator}},
      .summary = "Measures the link with payloads of the run's size; would it be the straggler?",
      .flags = WithClientFlags(
          {{.name = "update_bytes",
            .value = ByteSize{&options->update_bytes},
            .help =
                "Payload of an update; 0: the run's, or that of 1.2 B parameters where there is "
                "no run."},
           {.name = "result_bytes",
            .value = ByteSize{&options->result_bytes},
            .help = "Payload of a result; 0: the mean of the run's, or as above with 32 workers."},
           {.name = "transfer_limit",
            .value = &options->transfer_limit,
            .help = "Each of the three steps ends then, and counts what has moved. 100ms to 60s."}},
          &options->channel),
      .help =
          R"(Run it on the machine that shall train, before a GPU is committed. It moves an update up, a result down, then both at
once, each on a connection of its own as a worker does, and takes the slower rates. A round on this link takes at least
the longer of upload and download (their sum with overlap 0). When that is more than the run's rounds take now, the others
would wait for this worker: exit code 5. A run that trains meanwhile shares the aggregator's link: the figures are what a
worker would get. Role worker, archiver or admin; distro-worker bench-link does the same.

Example:
  distroctl bench-link aggregator.example:7700 --ca ca.pem --token_file w7.token)",
      .run = [options, console]() -> absl::StatusOr<int> {
        return console->Show(BenchLink(*options, console->progress));
      }};
}

}  // namespace distro::tools
