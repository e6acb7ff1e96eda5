// MeasureLink: sends and receives dummy bytes, to measure a link before a worker is started on it
// (docs/protocol.md, "Limits"). Streams, bytes and time are limited. Thread-safe.
#pragma once

#include <string>

#include "common/base/clock.h"
#include "distro/v1/link.grpc.pb.h"
#include "server/call/link_call.h"
#include "server/limits/stream_limiter.h"
#include "server/round/run_host.h"
#include "server/service/answering_reactor.h"
#include "server/service/call_checks.h"

namespace distro::server {

class LinkService final
    : public v1::LinkService::WithRawCallbackMethod_MeasureLink<v1::LinkService::Service> {
 public:
  // All are borrowed.
  LinkService(RunHost* host, const CallChecks* checks, StreamLimiter* limiter, const Clock* clock);

  RawBidiReactor* MeasureLink(grpc::CallbackServerContext* context) override;

 private:
  RunHost* const host_;
  const CallChecks* const checks_;
  StreamLimiter* const limiter_;
  const Clock* const clock_;
  const std::string noise_;
};

}  // namespace distro::server
