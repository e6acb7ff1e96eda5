// The HTTP server of a process without pages of its own: /metrics, /healthz and /readyz.
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/log.h"
#include "common/net/http/http_endpoint.h"
#include "prometheus/metric_family.h"

namespace distro {

// A worker or an archiver whose aggregator has not answered for longer is not ready.
inline constexpr absl::Duration kMostSilence = absl::Seconds(60);

// Serves `collect` and `ready` on `address` (host:port, the value of --http), and logs the address.
// InvalidArgument, which names the flag: the address is not valid. Unavailable: the port is in use.
absl::StatusOr<std::unique_ptr<HttpEndpoint>> ServeMetrics(
    const std::string& address, std::function<std::vector<prometheus::MetricFamily>()> collect,
    std::function<ReadyReport()> ready, Log* log);

// The same with Collect() and Ready() of a process's metrics object, which is borrowed.
template <typename Metrics>
absl::StatusOr<std::unique_ptr<HttpEndpoint>> ServeMetrics(const std::string& address,
                                                           Metrics* metrics, Log* log) {
  return ServeMetrics(
      address, [metrics] { return metrics->Collect(); }, [metrics] { return metrics->Ready(); },
      log);
}

}  // namespace distro
