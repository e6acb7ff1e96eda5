#include "common/net/telemetry/serve_metrics.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/net/telemetry/metric_families.h"

namespace distro {

absl::StatusOr<std::unique_ptr<HttpEndpoint>> ServeMetrics(
    const std::string& address, std::function<std::vector<prometheus::MetricFamily>()> collect,
    std::function<ReadyReport()> ready, Log* log) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) return Annotate(parsed.status(), "--http");
  DISTRO_ASSIGN_OR_RETURN(std::unique_ptr<HttpEndpoint> endpoint,
                          HttpEndpoint::Start(parsed->host, parsed->port,
                                              {MetricsRoute("/metrics", std::move(collect)),
                                               HealthRoute(), ReadyRoute(std::move(ready))}));
  log->Info("serving metrics", {{"http", absl::StrCat(parsed->host, ":", endpoint->port())}});
  return endpoint;
}

}  // namespace distro
