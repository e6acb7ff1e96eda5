// Payloads of the signs method (docs/payload_format.md): updates, and the votes that come of them.
//
// Encoders are canonical: a decoder accepts only what an encoder makes, so encode(decode(b)) == b.
// All decoders take hostile bytes: nothing is reserved by a length that was not compared, and every
// fault is an InvalidArgument that names both values. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/codec/payload_framing.h"
#include "common/update/sparse_update.h"
#include "common/update/votes.h"

namespace distro {

// Requires a valid update with 1 <= k <= 4096: records for k <= 8, gaps above.
std::string EncodeUpdate(const PayloadIdentity& identity, const SparseUpdate& update);

// A payload that passes is read without an error (common/codec/update_reader.h).
absl::Status ValidateUpdate(absl::string_view bytes, const PayloadExpectation& expected);

// Requires valid votes (ValidateVotes).
std::string EncodeVotes(const PayloadIdentity& identity, const Votes& votes);
// `threads` share the work; what is decoded, or wrong, does not depend on how many. Requires
// threads >= 1.
absl::StatusOr<Votes> DecodeVotes(absl::string_view bytes, const PayloadExpectation& expected,
                                  int threads = 1);

// Checks the header against `expected`, the body's length and the checksum, not the body.
absl::StatusOr<PayloadView> OpenUpdatePayload(absl::string_view bytes,
                                              const PayloadExpectation& expected);
absl::StatusOr<PayloadView> OpenVotesPayload(absl::string_view bytes,
                                             const PayloadExpectation& expected);

// The size of every update payload with k <= 8.
uint64_t RecordUpdatePayloadBytes(uint64_t blocks, int k);
// What a receiver compares a length with before it reserves. The votes of a block sum to at most
// `max_sum` (K * sum of weights).
uint64_t MaxUpdatePayloadBytes(uint64_t blocks, int k);
uint64_t MaxVotesPayloadBytes(uint64_t blocks, int max_sum = kMaxVotesPerBlock);

}  // namespace distro
