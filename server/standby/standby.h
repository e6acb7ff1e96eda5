// An aggregator that waits until it has to serve (--standby).
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "server/options/options.h"

namespace distro::server {

// Waits as AwaitLeadership (server/log/bucket/leader.h). Meanwhile it serves /healthz, and /readyz
// with 503, on options.http. `options` must be valid and have log_url; `clock` and `log` are
// borrowed. Unavailable: the address is in use. Blocking.
absl::Status WaitAsStandby(const AggregatorOptions& options, const std::function<bool()>& cancelled,
                           const Clock* clock, Log* log);

}  // namespace distro::server
