// distro-archiver: see flags.cc, or --help.
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "common/base/clock.h"
#include "common/base/exceptions.h"
#include "common/base/log.h"
#include "common/base/process/stop_signal.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/net/telemetry/serve_metrics.h"
#include "tools/archiver/archiver.h"
#include "tools/archiver/exit_code.h"
#include "tools/archiver/flags.h"

namespace distro::tools {
namespace {

void LogStart(const ArchiverOptions& options, Log* log) {
  log->Info("starting", {{"version", Version()},
                         {"aggregator", options.channel.aggregator},
                         {"connect_timeout", absl::FormatDuration(options.connect_timeout)},
                         {"data_dir", options.data_dir},
                         {"publish_dir", options.publish.dir},
                         {"keep", options.publish.keep},
                         {"snapshot_interval_rounds", options.snapshot_interval_rounds},
                         {"upload_snapshots", options.upload_snapshots ? "yes" : "no"},
                         {"threads", options.threads},
                         {"once", options.once ? "yes" : "no"},
                         {"http", options.http}});
}

absl::Status Follow(const ArchiverOptions& options, StopSignal* stop, Log* log) {
  ArchiverMetrics metrics;
  DISTRO_ASSIGN_OR_RETURN(const std::unique_ptr<HttpEndpoint> endpoint,
                          ServeMetrics(options.http, &metrics, log));
  DISTRO_ASSIGN_OR_RETURN(const std::unique_ptr<Archiver> archiver,
                          Archiver::Create(options, &metrics, log, Clock::Real()));
  stop->SetHandler([&archiver, log] {
    log->Info("stopping", {{"reason", "signal"}});
    archiver->Stop();
  });
  const auto unregister = absl::MakeCleanup([stop] { stop->SetHandler(nullptr); });
  return archiver->Run();
}

int Run(const ArchiverOptions& options) {
  StopSignal stop;
  Log log(options.log_level);
  LogStart(options, &log);
  const absl::Status status = CatchExceptions([&] { return Follow(options, &stop, &log); });
  const ArchiverExitCode code = ArchiverExitCodeFor(status);
  if (status.ok()) {
    log.Info("archiver ended", {{"exit_code", static_cast<int>(code)}});
  } else {
    log.Error("archiver ended", {{"exit_code", static_cast<int>(code)},
                                 {"reason", status},
                                 {"remedy", ArchiverRemedyFor(code)}});
  }
  return code;
}

}  // namespace
}  // namespace distro::tools

int main(int argc, char** argv) {
  distro::tools::ArchiverOptions options;
  return distro::RunProgram(
      distro::tools::ArchiverProgram(&options, [&options] { return distro::tools::Run(options); }),
      argc, argv);
}
