// What each background part of a session is given. All borrowed, all outlive the parts.
#pragma once

#include "common/base/clock.h"
#include "common/base/log.h"
#include "distro/v1/aggregator.grpc.pb.h"
#include "worker/exchange/exchange_options.h"
#include "worker/exchange/session.h"
#include "worker/exchange/transfer_meter.h"

namespace distro::worker {

struct Background {
  Session* session = nullptr;
  const GrpcExchangeOptions* options = nullptr;
  TransferMeter* meter = nullptr;
  Log* log = nullptr;
  const Clock* clock = nullptr;
};

}  // namespace distro::worker
