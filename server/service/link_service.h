// MeasureLink: bytes up and down that mean nothing, so that somebody knows a link before a worker is started on it
// (docs/protocol.md, "Limits"). Bounded: how many streams, how many bytes and how long. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "distro/v1/link.grpc.pb.h"
#include "server/auth/authorizer.h"
#include "server/limits/stream_gate.h"
#include "server/round/run_host.h"
#include "server/service/bidi_reactor.h"

namespace distro::server {

// Data of one message, either way.
inline constexpr uint64_t kMaxLinkMessageBytes = 64 * 1024;
// Of one stream, each way. A message counts as 256 bytes at least.
inline constexpr uint64_t kMaxLinkBytes = uint64_t{256} << 20;
inline constexpr absl::Duration kMaxLinkTime = absl::Minutes(5);

class LinkService final
    : public v1::LinkService::WithRawCallbackMethod_MeasureLink<v1::LinkService::Service> {
 public:
  // All are borrowed.
  LinkService(RunHost* host, const Authorizer* authorizer, StreamGate* gate, const Clock* clock);

  RawBidiReactor* MeasureLink(grpc::CallbackServerContext* context) override;

 private:
  RunHost* const host_;
  const Authorizer* const authorizer_;
  StreamGate* const gate_;
  const Clock* const clock_;
  const std::string noise_;  // kMaxLinkMessageBytes that do not compress
};

}  // namespace distro::server
