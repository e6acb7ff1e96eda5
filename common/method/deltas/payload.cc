#include "common/method/deltas/payload.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/method/deltas/gap_encoder.h"
#include "common/method/deltas/gap_format.h"
#include "common/method/deltas/scale.h"
#include "common/method/deltas/update_reader.h"

namespace distro {
namespace {

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

std::string EncodeDeltaResult(const PayloadIdentity& identity, absl::Span<DeltaGapEncoder> encoders,
                              int threads) {
  uint64_t blocks = 0;
  for (const DeltaGapEncoder& encoder : encoders) blocks += encoder.blocks();
  std::string bytes = StartPayload(identity, PayloadKind::kDeltaResult, 0, blocks);
  EncodeDeltaGaps(encoders, threads, &bytes);
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
  std::vector<SentGroup> groups;
  uint32_t block = 0;
  for (uint32_t left = GroupsOf(expected.blocks); left > 0; left -= groups.size()) {
    groups.resize(std::min(left, DeltaUpdateReader::kGroupsAtOnce));
    DISTRO_RETURN_IF_ERROR(reader.NextGroups(absl::MakeSpan(groups)));
    for (const SentGroup& group : groups) {
      for (uint32_t i = 0; i < group.blocks; ++i, ++block)
        DISTRO_RETURN_IF_ERROR(CheckCap(block, group.codes[i], caps[block]));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<PayloadView> OpenDeltaUpdate(absl::string_view payload,
                                            const PayloadExpectation& expected, PayloadKind kind) {
  DISTRO_RETURN_IF_ERROR(CheckExpectedK(expected.k));
  return OpenPayload(payload, expected, kind, expected.k,
                     MaxDeltaUpdateBytes(expected.blocks, expected.k));
}

absl::StatusOr<DenseUpdate> OpenDenseUpdate(absl::string_view payload,
                                            const PayloadExpectation& expected) {
  DISTRO_ASSIGN_OR_RETURN(const PayloadView view,
                          OpenDeltaUpdate(payload, expected, PayloadKind::kDenseDeltaUpdate));
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

namespace {

// With more entries of a block in all payloads, groups are decoded one by one: several at once
// would take more than 64 MB a thread.
constexpr size_t kMostAtOnce = 1 << 15;

// What is decoded of a payload.
struct SentPart {
  std::vector<SentGroup> groups;
  const uint16_t* entry = nullptr;  // of a group, those that are visited next
};

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

absl::Status VisitSentBlocks(absl::Span<const WeightedDeltaPayload> payloads,
                             const PayloadExpectation& expected, GroupRange range,
                             SentBlockVisitor visit) {
  std::vector<DeltaUpdateReader> readers;
  for (size_t i = 0; i < payloads.size(); ++i) {
    absl::StatusOr<DeltaUpdateReader> reader =
        DeltaUpdateReader::Create(payloads[i].bytes, expected, range.first);
    if (!reader.ok()) return Annotate(reader.status(), absl::StrCat("payload ", i));
    readers.push_back(*std::move(reader));
  }
  const auto k = static_cast<size_t>(expected.k);
  std::vector<SentPart> parts(payloads.size());
  std::vector<SparseSent> sent;
  const uint32_t at_once =
      payloads.size() * k <= kMostAtOnce ? DeltaUpdateReader::kGroupsAtOnce : 1;
  for (uint32_t group = range.first, end = range.first + range.count; group < end;) {
    const uint32_t some = std::min(end - group, at_once);
    // One payload's groups are decoded together, and then the blocks of all payloads visited: so
    // neither the decoder's tables nor the sums leave the cache.
    for (size_t i = 0; i < readers.size(); ++i) {
      parts[i].groups.resize(some);
      const absl::Status status = readers[i].NextGroups(absl::MakeSpan(parts[i].groups));
      if (!status.ok()) return Annotate(status, absl::StrCat("payload ", i));
    }
    for (uint32_t g = 0; g < some; ++g, ++group) {
      for (SentPart& part : parts) part.entry = part.groups[g].entries.data();
      const uint32_t first = group * kGroupBlocks;
      for (uint32_t block = first; block < std::min(expected.blocks, first + kGroupBlocks);
           ++block) {
        sent.clear();
        for (size_t i = 0; i < parts.size(); ++i) {
          const SentGroup& of = parts[i].groups[g];
          if (of.empty[block - first]) continue;
          sent.push_back({.entries = absl::MakeConstSpan(parts[i].entry, k),
                          .code = of.codes[block - first],
                          .weight = payloads[i].weight,
                          .payload = i});
          parts[i].entry += k;
        }
        visit(block, sent);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace distro
