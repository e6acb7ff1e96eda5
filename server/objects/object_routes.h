// Results and snapshots as objects over HTTP, for caches in front of the aggregator
// (docs/protocol.md, "Objects"). A name contains the SHA-256 of the bytes, so that an object never
// changes, and whoever fetches it can check it:
//
//   /v1/objects/RUN/ROUND/SEGMENT-SHA256
//   /v1/objects/RUN/snapshots/SHA256
#pragma once

#include "common/base/log.h"
#include "common/net/http/http_endpoint.h"
#include "server/call/observers.h"
#include "server/round/run_host.h"

namespace distro::server {

// All borrowed, for as long as the route is served.
struct ObjectSources {
  const RunHost* host = nullptr;
  TransferObserver* transfers = nullptr;
  Log* log = nullptr;
};

// 404: there is no such object, or no longer. 503: it is damaged, or the disk does not give it.
HttpRoute ObjectRoute(const ObjectSources& sources);

// For a port of its own: a cache in front of it makes many requests from one address, and fetches
// large objects for as long as they take.
HttpLimits ObjectLimits();

}  // namespace distro::server
