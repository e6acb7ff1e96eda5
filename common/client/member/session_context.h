// The options of a GrpcExchange, and the objects shared by the threads of one session. Plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/client/backoff.h"
#include "common/client/exchange/transfer_meter.h"
#include "common/client/follow/follower.h"
#include "common/client/follow/mirrors.h"
#include "common/client/member/member_state.h"
#include "common/client/options/channel_options.h"
#include "distro/v1/telemetry.pb.h"

namespace distro {

struct GrpcExchangeOptions {
  // The aggregator's address, TLS and credentials.
  ChannelOptions channel;
  // Delays between attempts after a temporary failure.
  BackoffOptions backoff;
  // How long the first Join waits for an aggregator that answers; infinite: no limit. Should exceed
  // the time that an aggregator takes to start.
  absl::Duration connect_timeout = absl::Seconds(60);
  // Timeout of Join and Heartbeat. With larger values a silent aggregator is noticed later.
  absl::Duration rpc_timeout = absl::Seconds(10);
  // Timeout of Leave, which delays the end of the process.
  absl::Duration leave_timeout = absl::Seconds(2);
  // A subscription that is behind what a heartbeat said is reopened after this long without a
  // frame. Must exceed the time of one frame (frames.h) on the slowest link.
  absl::Duration subscription_patience = absl::Seconds(30);
  // Results that may wait for the training thread: at most this many events and payload bytes, but
  // always one. Larger values let the download run further ahead of a slow device, at the cost of
  // that much memory.
  size_t queued_events = 64;
  uint64_t queued_bytes = uint64_t{128} << 20;
  // URLs of mirrors, instead of those that the aggregator names; "none": no mirror. Empty: those.
  std::vector<std::string> mirrors = {};
  // Returns the readings that a heartbeat reports; called by the heartbeat's thread each time.
  // Empty: heartbeats have no readings.
  std::function<v1::WorkerTelemetry()> telemetry = nullptr;
};

// All borrowed; all outlive the session's threads.
struct SessionContext {
  MemberState* state = nullptr;
  const GrpcExchangeOptions* options = nullptr;
  TransferMeter* meter = nullptr;
  Log* log = nullptr;
  const Clock* clock = nullptr;

  // The same for the parts that follow the log and do not train.
  Follower follower() const {
    return {.state = state,
            .meter = meter,
            .log = log,
            .clock = clock,
            .backoff = options->backoff,
            .seed = state->worker().incarnation(),
            .member = true};
  }

  MirrorList mirrors() const {
    return {.run_id = state->run_id(), .urls = ChosenMirrors(options->mirrors, state->mirrors())};
  }
};

}  // namespace distro
