// One upload of one update, from the header to the last acknowledgement.
#pragma once

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/client/connection.h"
#include "common/client/member/background.h"
#include "common/exchange/exchange.h"

namespace distro {

// Segments go in the order (round + i) mod n, in frames of at most 512 KiB; those that the aggregator holds are left
// out. Blocks; cancelled when the session ends, the round is committed or the epoch passes. OK: every segment is
// acknowledged. Otherwise the aggregator's status, or Unavailable when it closed the stream early.
absl::Status OfferUpdate(const Background& background, Connection* connection,
                         const RoundUpdate& update, EpochId epoch);

}  // namespace distro
