// The HTTP side of a process that has nothing to show but itself: /metrics, /healthz and /readyz.
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "common/http/http_endpoint.h"
#include "prometheus/metric_family.h"

namespace distro {

// Serves what `collect` and `ready` say on `address`, host:port, the value of --http, and logs
// where. InvalidArgument names the flag: the address. Unavailable: the port is taken.
absl::StatusOr<std::unique_ptr<HttpEndpoint>> ServeMetrics(
    const std::string& address, std::function<std::vector<prometheus::MetricFamily>()> collect,
    std::function<ReadyReport()> ready, Log* log);

// The same of a process's metrics object, borrowed: its Collect() and Ready().
template <typename Metrics>
absl::StatusOr<std::unique_ptr<HttpEndpoint>> ServeMetrics(const std::string& address,
                                                           Metrics* metrics, Log* log) {
  return ServeMetrics(
      address, [metrics] { return metrics->Collect(); }, [metrics] { return metrics->Ready(); },
      log);
}

}  // namespace distro
