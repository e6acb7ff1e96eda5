// What each background part of a session is given. All borrowed, all outlive the parts.
#pragma once

#include "common/base/clock.h"
#include "common/base/log.h"
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
};

}  // namespace distro
