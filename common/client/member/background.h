// The options of a GrpcExchange, and the objects that the background parts of a session share.
// Plain data.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/client/backoff.h"
#include "common/client/follow/follower.h"
#include "common/client/member/session.h"
#include "common/client/options/channel_options.h"
#include "common/exchange/transfer_meter.h"
#include "distro/v1/telemetry.pb.h"

namespace distro {

struct GrpcExchangeOptions {
  // Where the aggregator is, and whether plaintext is allowed.
  ChannelOptions channel;
  // Between attempts of anything that failed for now.
  BackoffOptions backoff;
  // How long the first Join looks for an aggregator that answers; infinite: for ever. Longer than
  // an aggregator takes to start.
  absl::Duration connect_timeout = absl::Seconds(60);
  // Of Join and Heartbeat. A larger value notices a silent aggregator later.
  absl::Duration rpc_timeout = absl::Seconds(10);
  // Of Leave, which delays the end of the process.
  absl::Duration leave_timeout = absl::Seconds(2);
  // A subscription that lags what a heartbeat said, without any frame for this long, is opened
  // again. Longer than one frame of 512 KiB takes on the slowest link.
  absl::Duration subscription_patience = absl::Seconds(30);
  // Results that may wait for the training thread: at most so many events and payload bytes, but
  // always one. Larger values let the download run further ahead of a slow device; they cost that
  // much memory.
  size_t queued_events = 64;
  uint64_t queued_bytes = uint64_t{128} << 20;
  // The readings that a heartbeat reports, asked of it each time by the heartbeat's thread; none:
  // no readings.
  std::function<v1::WorkerTelemetry()> telemetry = nullptr;
};

// All borrowed, all outlive the parts.
struct Background {
  Session* session = nullptr;
  const GrpcExchangeOptions* options = nullptr;
  TransferMeter* meter = nullptr;
  Log* log = nullptr;
  const Clock* clock = nullptr;

  // What the parts are given that do not train.
  Follower follower() const {
    return {.state = session,
            .meter = meter,
            .log = log,
            .clock = clock,
            .backoff = options->backoff,
            .seed = session->worker().incarnation(),
            .member = true};
  }
};

}  // namespace distro
