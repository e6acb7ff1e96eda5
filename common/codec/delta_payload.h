// Payloads of the deltas method (docs/payload_format.md): what a worker sends of a segment, and the
// result that everyone downloads. Canonical, and safe with hostile bytes, as those of payload.h.
//
//   std::string sent = EncodeDeltaUpdate(identity, update);
//   DISTRO_RETURN_IF_ERROR(ValidateDeltaUpdate(sent, expected, caps));      // at the aggregator
//   absl::StatusOr<DeltaMeans> means = CombineDeltaPayloads(payloads, expected, extents, rule);
//   std::string result = EncodeDeltaResult(identity, RoundToLevels(*means));
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/codec/gap_decoder.h"
#include "common/codec/payload_framing.h"
#include "common/update/combine_deltas.h"
#include "common/update/delta_update.h"

namespace distro {

// Requires a valid update.
std::string EncodeDeltaUpdate(const PayloadIdentity& identity, const DeltaUpdate& update);
// Requires a valid result.
std::string EncodeDeltaResult(const PayloadIdentity& identity, const DeltaResult& result);

// Whether an update is what an encoder makes, with codes of at most `caps` [blocks].
// InvalidArgument names what differs, or the first block that is not. Requires a cap for each
// expected block.
absl::Status ValidateDeltaUpdate(absl::string_view bytes, const PayloadExpectation& expected,
                                 absl::Span<const uint8_t> caps);

// `threads` share the work; what is decoded, or wrong, does not depend on how many.
// InvalidArgument: not what an encoder makes; whether it fits tensors and caps, ValidateDeltaResult
// says. Requires threads >= 1.
absl::StatusOr<DeltaResult> DecodeDeltaResult(absl::string_view bytes,
                                              const PayloadExpectation& expected, int threads = 1);

// What a receiver compares a length with before it reserves. A block of a result has at most
// `max_entries` positions (K * workers).
uint64_t MaxDeltaUpdateBytes(uint64_t blocks, int k);
uint64_t MaxDeltaResultBytes(uint64_t blocks, int max_entries = kBlockElements);

// A cursor over an update payload; holds one block of 16 KB. Not thread-safe. Borrows the payload.
class DeltaUpdateReader {
 public:
  // From the group of kGroupBlocks blocks on. Checks everything but the body. InvalidArgument names
  // what differs. Requires a group of the segment.
  static absl::StatusOr<DeltaUpdateReader> Create(absl::string_view payload,
                                                  const PayloadExpectation& expected,
                                                  uint32_t first_group = 0);

  // The next block; `count` is 0 where the record is empty, K elsewhere, and all levels are 0.
  // Valid until the next call. InvalidArgument: the body is not what an encoder makes; whoever
  // reads all of it hears with the last block what only the whole body shows. Requires a block that
  // is left.
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

// Told of every block of every payload, with the payload's number.
using DeltaBlockVisitor =
    absl::FunctionRef<void(size_t payload, uint32_t block, const GapBlock<DeltaFormat>& sent)>;

// The means of a segment's updates, block by block through one DeltaAccumulator, whatever their
// order; positions outside the tensors count nowhere. InvalidArgument: a payload is not valid (the
// message starts with its number), or weights that do not sum to rule.weights or pass
// kMaxDeltaWeights. Requires an extent for each expected block.
absl::StatusOr<DeltaMeans> CombineDeltaPayloads(absl::Span<const WeightedDeltaPayload> payloads,
                                                const PayloadExpectation& expected,
                                                absl::Span<const BlockExtent> extents,
                                                const MeanRule& rule);

// Groups first .. first + count - 1 only, which threads may share.
struct GroupRange {
  uint32_t first = 0;
  uint32_t count = 0;
};
absl::StatusOr<DeltaMeans> CombineDeltaPayloads(
    absl::Span<const WeightedDeltaPayload> payloads, const PayloadExpectation& expected,
    absl::Span<const BlockExtent> extents, const MeanRule& rule, GroupRange range,
    DeltaBlockVisitor visitor = [](auto&&...) {});

}  // namespace distro
