// Uploads one update once: one stream, from the header to the last acknowledgement
// (docs/protocol.md, "Upload"). Segments go in the order (round + i) mod n, in frames (frames.h).
// Segments that the aggregator already has are skipped.
#pragma once

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/client/connection.h"
#include "common/client/exchange/exchange.h"
#include "common/client/member/session_context.h"

namespace distro {

// Blocks. Cancelled when the session ends, the round is committed or the epoch changes. OK: every
// segment is acknowledged. Otherwise the aggregator's status; Unavailable: it closed the stream
// early; Internal: it broke the protocol.
absl::Status OfferUpdate(const SessionContext& context, Connection* connection,
                         const RoundUpdate& update, EpochId epoch);

}  // namespace distro
