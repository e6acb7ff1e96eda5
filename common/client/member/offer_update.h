// One upload of one update: a stream, from the header to the last acknowledgement
// (docs/protocol.md, "Upload"). Segments go in the order (round + i) mod n, in frames of at most
// 512 KiB; those that the aggregator holds are left out.
#pragma once

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/client/connection.h"
#include "common/client/member/background.h"
#include "common/exchange/exchange.h"

namespace distro {

// Blocks; cancelled when the session ends, the round is committed or the epoch passes. OK: every
// segment is acknowledged. Otherwise the aggregator's status, Unavailable when it closed the stream
// early, or Internal when it broke the protocol.
absl::Status OfferUpdate(const Background& background, Connection* connection,
                         const RoundUpdate& update, EpochId epoch);

}  // namespace distro
