// Payloads of the deltas method (docs/payload_format.md): a worker's update of a segment, and the
// result that all workers download. Canonical and safe with hostile bytes, like those of
// common/method/signs/payload.h. With K = 4096 both are dense (dense_update.h,
// dense_result.h).
//
//   std::string sent = EncodeDeltaUpdate(identity, update);
//   DISTRO_RETURN_IF_ERROR(ValidateDeltaUpdate(sent, expected, caps));      // at the aggregator
//   CombineDeltaPayloads(payloads, expected, extents, rule, groups, sent, combined);
//   std::string result = EncodeDeltaResult(identity, result);  // of what `combined` appended
#pragma once

#include <cstdint>
#include <memory>
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
#include "common/method/deltas/update.h"

namespace distro {

// Requires a valid update.
std::string EncodeDeltaUpdate(const PayloadIdentity& identity, const DeltaUpdate& update);
// Of a run with K below 4096. Requires a valid result.
std::string EncodeDeltaResult(const PayloadIdentity& identity, const DeltaResult& result);
// Of a run with K = 4096. Requires a valid result.
std::string EncodeDenseDeltaResult(const PayloadIdentity& identity, const DenseResult& result);

// Checks that an update is a canonical encoding with codes of at most `caps` [blocks].
// InvalidArgument names the field that differs, or the first invalid block. Requires a cap for each
// expected block.
absl::Status ValidateDeltaUpdate(absl::string_view bytes, const PayloadExpectation& expected,
                                 absl::Span<const uint8_t> caps);

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

// A cursor over an update payload that is not dense; holds one block of 16 KB. Not thread-safe.
// Borrows the payload.
class DeltaUpdateReader {
 public:
  // Starts at a group of kGroupBlocks blocks. Checks everything but the body. InvalidArgument names
  // the field that differs. Requires a group of the segment.
  static absl::StatusOr<DeltaUpdateReader> Create(absl::string_view payload,
                                                  const PayloadExpectation& expected,
                                                  uint32_t first_group = 0);

  // The next block; `count` is 0 if the record is empty, else K, and all levels are 0. Valid until
  // the next call. InvalidArgument: the body is not a canonical encoding; errors that only the
  // whole body shows are returned with the last block. Requires that a block is left.
  absl::StatusOr<const GapBlock<DeltaFormat>*> NextBlock();

 private:
  DeltaUpdateReader(std::shared_ptr<const GapBody<DeltaFormat>> body, int k, uint32_t first_group);
  absl::Status CheckBlock() const;

  int k_;
  bool whole_;
  uint32_t next_;
  GapDecoder<DeltaFormat> decoder_;
  std::unique_ptr<GapBlock<DeltaFormat>> block_;
};

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

// Called for every block of every payload, with the payload's number.
using SentBlockVisitor =
    absl::FunctionRef<void(size_t payload, uint32_t block, const GapBlock<DeltaFormat>& sent)>;
// Called for every block in order, with its means alone; they are forgotten afterwards.
using BlockMeansVisitor = absl::FunctionRef<void(uint32_t block, const DeltaMeans& means)>;

// The means of a segment's updates, block by block through one DeltaAccumulator. Their order does
// not matter; positions outside the tensors are ignored. InvalidArgument: a payload is not valid
// (the message starts with its number), or CheckWeights refuses the weights. Requires an extent for
// each expected block, and payloads that are not dense.
absl::Status CombineDeltaPayloads(absl::Span<const WeightedDeltaPayload> payloads,
                                  const PayloadExpectation& expected,
                                  absl::Span<const BlockExtent> extents, const MeanRule& rule,
                                  GroupRange range, SentBlockVisitor sent,
                                  BlockMeansVisitor combined);

}  // namespace distro
