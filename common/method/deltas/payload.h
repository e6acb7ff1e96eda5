// Payloads of the deltas method (docs/payload_format.md): a worker's update of a segment, and the
// result that all workers download. Canonical and safe with hostile bytes, like those of
// common/method/signs/payload.h. With K = 4096 both are dense (dense_update.h,
// dense_result.h).
//
//   std::string sent = EncodeDeltaUpdate(identity, update);
//   DISTRO_RETURN_IF_ERROR(ValidateDeltaUpdate(sent, expected, caps));      // at the aggregator
//   VisitSentBlocks(payloads, expected, groups, visit);
//   std::string result = EncodeDeltaResult(identity, encoders, threads);
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/method/codec/payload_framing.h"
#include "common/method/deltas/combine.h"
#include "common/method/deltas/dense_result.h"
#include "common/method/deltas/dense_update.h"
#include "common/method/deltas/gap_format.h"
#include "common/method/deltas/sparse_combine.h"
#include "common/method/deltas/update.h"

namespace distro {

class DeltaGapEncoder;

// Requires a valid update.
std::string EncodeDeltaUpdate(const PayloadIdentity& identity, const DeltaUpdate& update);
// Of a run with K below 4096. Requires a valid result.
std::string EncodeDeltaResult(const PayloadIdentity& identity, const DeltaResult& result);
// The same of the blocks of all encoders (gap_encoder.h), on at most `threads` threads.
std::string EncodeDeltaResult(const PayloadIdentity& identity, absl::Span<DeltaGapEncoder> encoders,
                              int threads);
// Of a run with K = 4096. Requires a valid result.
std::string EncodeDenseDeltaResult(const PayloadIdentity& identity, const DenseResult& result);

// Checks that an update is a canonical encoding with codes of at most `caps` [blocks].
// InvalidArgument names the field that differs, or an invalid block. Requires a cap for each
// expected block.
absl::Status ValidateDeltaUpdate(absl::string_view bytes, const PayloadExpectation& expected,
                                 absl::Span<const uint8_t> caps);

// The framing of an update payload. InvalidArgument names the field that differs.
absl::StatusOr<PayloadView> OpenDeltaUpdate(absl::string_view payload,
                                            const PayloadExpectation& expected, PayloadKind kind);

// The update of a run with K = 4096; it borrows the payload. InvalidArgument: not a canonical
// encoding, or a field differs. Does not check caps.
absl::StatusOr<DenseUpdate> OpenDenseUpdate(absl::string_view payload,
                                            const PayloadExpectation& expected);

// Decodes the result of a run with K = expected.k on `threads` threads; the result or error does
// not depend on their number. InvalidArgument: not a canonical encoding. Does not check tensors and
// caps: ValidateDeltaResult does. Requires threads >= 1.
absl::StatusOr<DeltaResult> DecodeDeltaResult(absl::string_view bytes,
                                              const PayloadExpectation& expected, int threads = 1);

// Limits that a receiver checks before it reserves memory. A block of a result has at most
// `max_entries` positions (K * workers).
uint64_t MaxDeltaUpdateBytes(uint64_t blocks, int k);
uint64_t MaxDeltaResultBytes(uint64_t blocks, int max_entries = kBlockElements);

struct WeightedDeltaPayload {
  absl::string_view bytes;  // borrowed; an update that ValidateDeltaUpdate passes
  int weight = 1;           // n_w, 1 or more
};

// InvalidArgument: a weight is below 1, or their sum is not rule.weights or exceeds
// kMaxDeltaWeights.
absl::Status CheckWeights(absl::Span<const WeightedDeltaPayload> payloads, const MeanRule& rule);

// Groups first .. first + count - 1, for a thread's part of the work.
struct GroupRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

// Called for every block in order, with what is sent of it.
using SentBlockVisitor = absl::FunctionRef<void(uint32_t block, absl::Span<const SparseSent> sent)>;

// Decodes a segment's updates together, block by block. InvalidArgument: a payload is not valid
// (the message starts with its number). Does not check weights. Requires payloads that are not
// dense.
absl::Status VisitSentBlocks(absl::Span<const WeightedDeltaPayload> payloads,
                             const PayloadExpectation& expected, GroupRange range,
                             SentBlockVisitor visit);

}  // namespace distro
