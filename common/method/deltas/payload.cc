#include "common/method/deltas/payload.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/method/deltas/gap_format.h"
#include "common/method/deltas/scale.h"

namespace distro {
namespace {

absl::StatusOr<PayloadView> OpenUpdate(absl::string_view bytes, const PayloadExpectation& expected,
                                       PayloadKind kind) {
  DISTRO_RETURN_IF_ERROR(CheckExpectedK(expected.k));
  return OpenPayload(bytes, expected, kind, expected.k,
                     MaxDeltaUpdateBytes(expected.blocks, expected.k));
}

absl::Status CheckCap(uint32_t block, uint8_t code, uint8_t cap) {
  if (code <= cap) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("block ", block, ": scale code ", code, " is above the cap ", cap));
}

absl::Status ValidateDenseUpdate(absl::string_view bytes, const PayloadExpectation& expected,
                                 absl::Span<const uint8_t> caps) {
  DISTRO_ASSIGN_OR_RETURN(const DenseUpdate update, OpenDenseUpdate(bytes, expected));
  for (uint32_t i = 0; i < expected.blocks; ++i)
    DISTRO_RETURN_IF_ERROR(CheckCap(i, update.code(i), caps[i]));
  return absl::OkStatus();
}

}  // namespace

std::string EncodeDeltaUpdate(const PayloadIdentity& identity, const DeltaUpdate& update) {
  const bool dense = IsDense(update.k);
  std::string bytes =
      StartPayload(identity, dense ? PayloadKind::kDenseDeltaUpdate : PayloadKind::kDeltaUpdate,
                   update.k, update.blocks());
  if (dense)
    AppendDenseUpdate(update, &bytes);
  else
    EncodeDeltaGaps(ResultOf(update), &bytes);
  return FinishPayload(std::move(bytes));
}

std::string EncodeDeltaResult(const PayloadIdentity& identity, const DeltaResult& result) {
  std::string bytes = StartPayload(identity, PayloadKind::kDeltaResult, 0, result.blocks());
  EncodeDeltaGaps(result, &bytes);
  return FinishPayload(std::move(bytes));
}

std::string EncodeDenseDeltaResult(const PayloadIdentity& identity, const DenseResult& result) {
  std::string bytes = StartPayload(identity, PayloadKind::kDenseDeltaResult, 0, result.blocks());
  AppendDenseResult(result, &bytes);
  return FinishPayload(std::move(bytes));
}

absl::Status ValidateDeltaUpdate(absl::string_view bytes, const PayloadExpectation& expected,
                                 absl::Span<const uint8_t> caps) {
  if (IsDense(expected.k)) return ValidateDenseUpdate(bytes, expected, caps);
  DISTRO_ASSIGN_OR_RETURN(DeltaUpdateReader reader, DeltaUpdateReader::Create(bytes, expected));
  for (uint32_t i = 0; i < expected.blocks; ++i) {
    DISTRO_ASSIGN_OR_RETURN(const GapBlock<DeltaFormat>* const block, reader.NextBlock());
    DISTRO_RETURN_IF_ERROR(CheckCap(i, block->code, caps[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<DenseUpdate> OpenDenseUpdate(absl::string_view payload,
                                            const PayloadExpectation& expected) {
  DISTRO_ASSIGN_OR_RETURN(const PayloadView view,
                          OpenUpdate(payload, expected, PayloadKind::kDenseDeltaUpdate));
  return DenseUpdate::Open(view.body, view.header.blocks);
}

absl::StatusOr<DeltaResult> DecodeDeltaResult(absl::string_view bytes,
                                              const PayloadExpectation& expected, int threads) {
  const bool dense = IsDense(expected.k);
  const PayloadKind kind = dense ? PayloadKind::kDenseDeltaResult : PayloadKind::kDeltaResult;
  DISTRO_ASSIGN_OR_RETURN(
      const PayloadView payload,
      OpenPayload(bytes, expected, kind, 0, MaxDeltaResultBytes(expected.blocks)));
  if (!dense) return DecodeDeltaGaps(payload.body, expected.blocks, threads);
  DISTRO_ASSIGN_OR_RETURN(const DenseResult result,
                          DecodeDenseResult(payload.body, expected.blocks, threads));
  return SparseOf(result);
}

uint64_t MaxDeltaUpdateBytes(uint64_t blocks, int k) {
  return kPayloadFramingBytes +
         (IsDense(k) ? DenseUpdateBytes(blocks) : MaxDeltaBodyBytes(blocks, k));
}

uint64_t MaxDeltaResultBytes(uint64_t blocks, int max_entries) {
  return kPayloadFramingBytes + MaxDeltaBodyBytes(blocks, std::min(max_entries, kBlockElements));
}

DeltaUpdateReader::DeltaUpdateReader(std::shared_ptr<const GapBody<DeltaFormat>> body, int k,
                                     uint32_t first_group)
    : k_(k),
      whole_(first_group == 0),
      next_(first_group * kGroupBlocks),
      decoder_(std::move(body), first_group),
      block_(std::make_unique<GapBlock<DeltaFormat>>()) {}

absl::StatusOr<DeltaUpdateReader> DeltaUpdateReader::Create(absl::string_view payload,
                                                            const PayloadExpectation& expected,
                                                            uint32_t first_group) {
  DISTRO_ASSIGN_OR_RETURN(const PayloadView view,
                          OpenUpdate(payload, expected, PayloadKind::kDeltaUpdate));
  DISTRO_ASSIGN_OR_RETURN(std::shared_ptr<const GapBody<DeltaFormat>> body,
                          GapBody<DeltaFormat>::Open(view.body, view.header.blocks));
  return DeltaUpdateReader(std::move(body), expected.k, first_group);
}

absl::StatusOr<const GapBlock<DeltaFormat>*> DeltaUpdateReader::NextBlock() {
  DISTRO_RETURN_IF_ERROR(decoder_.NextBlock(block_.get()));
  DISTRO_RETURN_IF_ERROR(CheckBlock());
  ++next_;
  // Only a reader that began with the first group has counted every symbol.
  if (whole_ && next_ == decoder_.body().blocks())
    DISTRO_RETURN_IF_ERROR(decoder_.body().CheckModel(decoder_.model()));
  return block_.get();
}

absl::Status DeltaUpdateReader::CheckBlock() const {
  const uint32_t count = block_->count;
  if (count != 0 && count != static_cast<uint32_t>(k_)) {
    return absl::InvalidArgumentError(
        absl::StrCat("block ", next_, ": ", count, " entries, an update has 0 or ", k_));
  }
  if (block_->level_zero) return absl::OkStatus();
  const auto* const above = std::find_if(block_->levels.begin(), block_->levels.begin() + count,
                                         [](uint8_t level) { return level != 0; });
  return absl::InvalidArgumentError(
      absl::StrCat("block ", next_, ": level ", *above, ", an update has 0"));
}

namespace {

// The entries of some blocks of one payload, decoded. One payload's blocks are decoded together,
// and then those of all payloads added block by block: so neither the decoder's tables nor the sums
// leave the cache.
struct DecodedBlocks {
  std::vector<uint16_t> positions;           // [blocks, k]
  std::vector<int8_t> signs;                 // [blocks, k]
  std::array<int64_t, kGroupBlocks> scales;  // 0: the record is empty
  size_t next = 0;                           // entry that is added next
};

absl::Status DecodeGroup(uint32_t first, uint32_t end, size_t payload, DeltaUpdateReader* reader,
                         SentBlockVisitor visitor, DecodedBlocks* decoded) {
  decoded->positions.clear();
  decoded->signs.clear();
  decoded->next = 0;
  for (uint32_t block = first; block < end; ++block) {
    DISTRO_ASSIGN_OR_RETURN(const GapBlock<DeltaFormat>* const sent, reader->NextBlock());
    visitor(payload, block, *sent);
    decoded->scales[block - first] = sent->count == 0 ? 0 : ScaleOf(sent->code);
    const auto count = static_cast<ptrdiff_t>(sent->count);
    decoded->positions.insert(decoded->positions.end(), sent->positions.begin(),
                              sent->positions.begin() + count);
    decoded->signs.insert(decoded->signs.end(), sent->signs.begin(), sent->signs.begin() + count);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckWeights(absl::Span<const WeightedDeltaPayload> payloads, const MeanRule& rule) {
  int64_t sum = 0;
  for (const WeightedDeltaPayload& payload : payloads) {
    if (payload.weight < 1)
      return absl::InvalidArgumentError(absl::StrCat("weight ", payload.weight, " is below 1"));
    sum += payload.weight;
  }
  if (sum == rule.weights && sum <= kMaxDeltaWeights) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("weights sum to ", sum, ", expected ",
                                                 rule.weights, " and at most ", kMaxDeltaWeights));
}

absl::Status CombineDeltaPayloads(absl::Span<const WeightedDeltaPayload> payloads,
                                  const PayloadExpectation& expected,
                                  absl::Span<const BlockExtent> extents, const MeanRule& rule,
                                  GroupRange range, SentBlockVisitor sent,
                                  BlockMeansVisitor combined) {
  DISTRO_RETURN_IF_ERROR(CheckWeights(payloads, rule));
  std::vector<DeltaUpdateReader> readers;
  for (size_t i = 0; i < payloads.size(); ++i) {
    absl::StatusOr<DeltaUpdateReader> reader =
        DeltaUpdateReader::Create(payloads[i].bytes, expected, range.first);
    if (!reader.ok()) return Annotate(reader.status(), absl::StrCat("payload ", i));
    readers.push_back(*std::move(reader));
  }
  const auto k = static_cast<size_t>(expected.k);
  DeltaAccumulator accumulator(rule);
  DeltaMeans means;
  std::vector<DecodedBlocks> decoded(payloads.size());
  for (uint32_t group = range.first; group < range.first + range.count; ++group) {
    const uint32_t first = group * kGroupBlocks;
    const uint32_t end = std::min(expected.blocks, first + kGroupBlocks);
    for (size_t i = 0; i < readers.size(); ++i) {
      const absl::Status status = DecodeGroup(first, end, i, &readers[i], sent, &decoded[i]);
      if (!status.ok()) return Annotate(status, absl::StrCat("payload ", i));
    }
    for (uint32_t block = first; block < end; ++block) {
      for (size_t i = 0; i < readers.size(); ++i) {
        DecodedBlocks& of = decoded[i];
        const int64_t scale = of.scales[block - first];
        if (scale == 0) continue;
        accumulator.Add(extents[block], absl::MakeSpan(of.positions).subspan(of.next, k),
                        absl::MakeSpan(of.signs).subspan(of.next, k), scale, payloads[i].weight);
        of.next += k;
      }
      means.Clear();
      accumulator.EmitBlock(&means);
      combined(block, means);
    }
  }
  return absl::OkStatus();
}

}  // namespace distro
