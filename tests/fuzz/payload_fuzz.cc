// Payloads of all kinds. The first input byte chooses the expectation, and whether header and
// checksum are corrected first, so that the fuzzer reaches the body. An accepted payload must
// encode to the same bytes, and both ways of reading an update must agree.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "common/method/deltas/dense_combine.h"
#include "common/method/deltas/payload.h"
#include "common/method/deltas/scale.h"
#include "common/method/deltas/sparse_combine.h"
#include "common/method/signs/payload.h"
#include "common/method/signs/update_reader.h"
#include "common/method/signs/votes.h"
#include "tests/fuzz/require.h"
#include "tests/testing/combined_deltas.h"
#include "tests/testing/plain_deltas.h"
#include "tests/testing/plain_updates.h"

namespace distro {
namespace {

using testing::Require;

using ::distro::testing::DecodeDeltaUpdate;
using ::distro::testing::DecodeSignUpdate;

constexpr PayloadIdentity kIdentity = {
    .layout_hash = 7, .round = RoundId(3), .segment = SegmentId(1)};

// A payload with the right framing around `body`.
std::string Frame(absl::string_view body, PayloadKind kind, int k, uint32_t blocks) {
  return FinishPayload(StartPayload(kIdentity, kind, k, blocks).append(body.data(), body.size()));
}

void FuzzVotes(const std::string& bytes, const PayloadExpectation& expected) {
  const absl::StatusOr<Votes> votes = DecodeVotes(bytes, expected);
  Require(votes.ok() || votes.status().code() == absl::StatusCode::kInvalidArgument);
  if (!votes.ok()) return;
  Require(ValidateVotes(*votes, expected.blocks).ok());
  Require(EncodeVotes(kIdentity, *votes) == bytes);
}

void FuzzUpdate(const std::string& bytes, const PayloadExpectation& expected) {
  const absl::StatusOr<SignUpdate> update = DecodeSignUpdate(bytes, expected);
  Require(update.ok() || update.status().code() == absl::StatusCode::kInvalidArgument);
  const WeightedSignPayload payload = {bytes, 1};
  Require(ValidateSignUpdate(bytes, expected).ok() == update.ok());
  Require(CombineSignPayloads({&payload, 1}, expected).ok() == update.ok());
  if (update.ok()) Require(EncodeSignUpdate(kIdentity, *update) == bytes);
}

void FuzzDeltaResult(const std::string& bytes, const PayloadExpectation& expected) {
  const absl::StatusOr<DeltaResult> result = DecodeDeltaResult(bytes, expected);
  Require(result.ok() || result.status().code() == absl::StatusCode::kInvalidArgument);
  Require(DecodeDeltaResult(bytes, expected, 2).status() == result.status());
  if (result.ok()) Require(EncodeDeltaResult(kIdentity, *result) == bytes);
}

void FuzzDenseDeltaResult(const std::string& bytes, const PayloadExpectation& expected) {
  const absl::StatusOr<DeltaResult> result = DecodeDeltaResult(bytes, expected);
  Require(result.ok() || result.status().code() == absl::StatusCode::kInvalidArgument);
  Require(DecodeDeltaResult(bytes, expected, 2).status() == result.status());
  if (result.ok()) Require(EncodeDenseDeltaResult(kIdentity, DenseOf(*result)) == bytes);
}

// `copies` equal updates combine by bits as they do position by position.
void RequireCombined(const DenseUpdate& dense, const DeltaUpdate& update, int copies) {
  const MeanRule rule = {.weights = copies};
  DenseAccumulator accumulator(rule);
  DenseResult result = {.symbols = std::vector<uint8_t>(update.signs.size()), .codes = {}};
  const std::vector<BlockExtent> extents(update.blocks(), {.rows = 3, .cols = 64, .last_cols = 5});
  for (uint32_t block = 0; block < dense.blocks(); ++block) {
    std::vector<DenseSent> sent;
    if (!dense.empty(block)) {
      sent.assign(copies, {.signs = dense.SignsOf(block), .value = ScaleOf(dense.code(block))});
    }
    uint8_t* const symbols = result.symbols.data() + size_t{block} * kBlockElements;
    result.codes.push_back(accumulator.Combine(extents[block], sent, symbols).code);
  }
  const std::vector<WeightedDelta> same(copies, {.update = &update});
  Require(SparseOf(result) == RoundToLevels(CombineDeltas(same, extents, rule)));
}

void FuzzDenseDeltaUpdate(const std::string& bytes, const PayloadExpectation& expected) {
  const std::vector<uint8_t> caps(expected.blocks, kScaleCodes - 1);
  const absl::Status status = ValidateDeltaUpdate(bytes, expected, caps);
  Require(status.ok() || status.code() == absl::StatusCode::kInvalidArgument);
  const absl::StatusOr<DeltaUpdate> update = DecodeDeltaUpdate(bytes, expected);
  Require(update.ok() == status.ok());
  if (!update.ok()) return;
  Require(ValidateDeltaUpdate(*update, caps).ok());
  Require(EncodeDeltaUpdate(kIdentity, *update) == bytes);
  for (const int copies : {1, 9})
    RequireCombined(*OpenDenseUpdate(bytes, expected), *update, copies);
}

// With one of other signs and scales it combines to the levels of the means.
void RequireLevels(const std::string& bytes, const DeltaUpdate& update,
                   const PayloadExpectation& expected) {
  DeltaUpdate other = update;
  for (size_t i = 0; i < other.signs.size(); i += 2) other.signs[i] = -other.signs[i];
  for (int64_t block = 0; block < other.blocks(); ++block)
    if (!other.empty(block)) other.codes[block] = kScaleCodes - 1 - other.codes[block];
  const std::string of_other = EncodeDeltaUpdate(kIdentity, other);
  const MeanRule rule = {.weights = 4, .least_senders = 2};
  const std::vector<BlockExtent> extents(expected.blocks, {.rows = 3, .cols = 64, .last_cols = 5});
  const std::vector<WeightedDeltaPayload> payloads = {{.bytes = bytes, .weight = 1},
                                                      {.bytes = of_other, .weight = 3}};
  const DeltaMeans means = CombineDeltas({{&update, 1}, {&other, 3}}, extents, rule);
  SparseAccumulator accumulator(rule);
  DeltaBlock found, wanted;
  Require(VisitSentBlocks(payloads, expected, {.first = 0, .count = GroupsOf(expected.blocks)},
                          [&](uint32_t block, absl::Span<const SparseSent> sent) {
                            accumulator.Combine(extents[block], sent, &found);
                            RoundBlock(means, block, &wanted);
                            Require(found.code == wanted.code && found.count == wanted.count);
                            const auto same = [&](const auto& a, const auto& b) {
                              return std::equal(a.begin(), a.begin() + found.count, b.begin());
                            };
                            Require(same(found.positions, wanted.positions) &&
                                    same(found.signs, wanted.signs) &&
                                    same(found.levels, wanted.levels));
                          })
              .ok());
}

void FuzzDeltaUpdate(const std::string& bytes, const PayloadExpectation& expected) {
  const std::vector<uint8_t> caps(expected.blocks, kScaleCodes - 1);
  const absl::Status status = ValidateDeltaUpdate(bytes, expected, caps);
  Require(status.ok() || status.code() == absl::StatusCode::kInvalidArgument);
  const absl::StatusOr<DeltaUpdate> update = DecodeDeltaUpdate(bytes, expected);
  Require(update.ok() == status.ok());
  const WeightedDeltaPayload payload = {.bytes = bytes, .weight = 1};
  const std::vector<BlockExtent> extents(expected.blocks);
  Require(testing::CombinedMeans({&payload, 1}, expected, extents, {.weights = 1}).ok() ==
          status.ok());
  if (!update.ok()) return;
  Require(ValidateDeltaUpdate(*update, caps).ok());
  Require(EncodeDeltaUpdate(kIdentity, *update) == bytes);
  RequireLevels(bytes, *update, expected);
}

void Fuzz(PayloadKind kind, const std::string& bytes, const PayloadExpectation& expected) {
  switch (kind) {
    case PayloadKind::kSignRecords:
    case PayloadKind::kSignGaps:
      return FuzzUpdate(bytes, expected);
    case PayloadKind::kVotes:
      return FuzzVotes(bytes, expected);
    case PayloadKind::kDeltaUpdate:
      return FuzzDeltaUpdate(bytes, expected);
    case PayloadKind::kDeltaResult:
      return FuzzDeltaResult(bytes, expected);
    case PayloadKind::kDenseDeltaUpdate:
      return FuzzDenseDeltaUpdate(bytes, expected);
    case PayloadKind::kDenseDeltaResult:
      return FuzzDenseDeltaResult(bytes, expected);
  }
}

// The choices of the first input byte.
struct Choice {
  PayloadKind kind;
  int k;
};
constexpr Choice kChoices[] = {{PayloadKind::kVotes, 0},
                               {PayloadKind::kSignRecords, 1},
                               {PayloadKind::kSignRecords, 3},
                               {PayloadKind::kSignRecords, 4},
                               {PayloadKind::kSignRecords, 8},
                               {PayloadKind::kSignGaps, 9},
                               {PayloadKind::kSignGaps, 20},
                               {PayloadKind::kVotes, 0},
                               {PayloadKind::kDeltaResult, 0},
                               {PayloadKind::kDeltaUpdate, 1},
                               {PayloadKind::kDeltaUpdate, 8},
                               {PayloadKind::kDeltaUpdate, 32},
                               {PayloadKind::kDeltaUpdate, 3},
                               {PayloadKind::kDeltaResult, 0},
                               {PayloadKind::kDenseDeltaResult, 4096},
                               {PayloadKind::kDenseDeltaUpdate, 4096}};

}  // namespace
}  // namespace distro

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace distro;
  if (size < 2) return 0;
  const Choice choice = kChoices[data[0] % std::size(kChoices)];
  const bool frame = (data[0] & 0x80) == 0;
  // Four groups are read together: with the second bit of it there are as many.
  const uint32_t blocks = data[1] + (data[0] & 0x40 ? 256 : 0) + (data[0] & 0x20 ? 1024 : 0);
  const absl::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  // Of a result, K is not in the header.
  const int k = choice.kind == PayloadKind::kDenseDeltaResult ? 0 : choice.k;
  const std::string bytes = frame ? Frame(rest, choice.kind, k, blocks) : std::string(rest);
  Fuzz(choice.kind, bytes,
       {.layout_hash = kIdentity.layout_hash,
        .round = kIdentity.round,
        .segment = kIdentity.segment,
        .blocks = blocks,
        .k = choice.k});
  return 0;
}
