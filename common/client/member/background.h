// What each background part of a session is given. All borrowed, all outlive the parts.
#pragma once

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/client/follow/follower.h"
#include "common/client/member/exchange_options.h"
#include "common/client/member/session.h"
#include "common/exchange/transfer_meter.h"
#include "distro/v1/aggregator.grpc.pb.h"

namespace distro {

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
