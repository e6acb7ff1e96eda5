#include "server/standby/standby.h"

#include <memory>
#include <utility>

#include "common/base/address.h"
#include "common/base/status_macros.h"
#include "common/net/http/http_endpoint.h"
#include "common/net/s3/s3_client.h"
#include "server/log/bucket/leader.h"

namespace distro::server {

absl::Status WaitAsStandby(const AggregatorOptions& options, const std::function<bool()>& cancelled,
                           const Clock* clock, Log* log) {
  DISTRO_ASSIGN_OR_RETURN(const auto bucket,
                          S3Client::Open(options.log_url, clock, {.cancelled = cancelled}));
  DISTRO_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(options.http));
  ReadyReport report{
      .ready = false,
      .checks = {{"leads", false, "another aggregator leads, or the bucket cannot be used (log)"}}};
  DISTRO_ASSIGN_OR_RETURN(
      const auto http,
      HttpEndpoint::Start(address.host, address.port,
                          {HealthRoute(), ReadyRoute([report] { return report; })}));
  log->Info("standby",
            {{"log", options.log_url}, {"http", JoinHostPort(address.host, http->port())}});
  return AwaitLeadership(bucket.get(), options.data_dir, options.takeover_after, cancelled, clock,
                         log);
}

}  // namespace distro::server
