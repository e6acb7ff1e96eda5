// Payloads of the signs method (docs/payload_format.md): updates of workers, and votes of the
// aggregator.
//
// Encodings are canonical: a decoder accepts only the output of an encoder, so encode(decode(b)) ==
// b. All decoders accept hostile bytes: every length is checked before memory is reserved, and
// every fault is an InvalidArgument that names both values. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/method/codec/payload_framing.h"
#include "common/method/signs/update.h"
#include "common/method/signs/votes.h"

namespace distro {

// Requires a valid update with 1 <= k <= 4096: records for k <= 8, gaps above.
std::string EncodeSignUpdate(const PayloadIdentity& identity, const SignUpdate& update);

// SignUpdateReader (common/method/signs/update_reader.h) reads a valid payload without an error.
absl::Status ValidateSignUpdate(absl::string_view bytes, const PayloadExpectation& expected);

// Requires valid votes (ValidateVotes).
std::string EncodeVotes(const PayloadIdentity& identity, const Votes& votes);
// Decodes on `threads` threads; the result or error does not depend on their number. Requires
// threads >= 1.
absl::StatusOr<Votes> DecodeVotes(absl::string_view bytes, const PayloadExpectation& expected,
                                  int threads = 1);

// Checks the header against `expected`, the body's length and the checksum, not the body.
absl::StatusOr<PayloadView> OpenSignUpdate(absl::string_view bytes,
                                           const PayloadExpectation& expected);
absl::StatusOr<PayloadView> OpenVotes(absl::string_view bytes, const PayloadExpectation& expected);

// The size of every update payload with k <= 8.
uint64_t SignRecordUpdateBytes(uint64_t blocks, int k);
// Limits that a receiver checks before it reserves memory. The votes of a block sum to at most
// `max_sum` (K * sum of weights).
uint64_t MaxSignUpdateBytes(uint64_t blocks, int k);
uint64_t MaxVotesBytes(uint64_t blocks, int max_sum = kMaxVotesPerBlock);

}  // namespace distro
