#include "common/method/deltas/rounds.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/bitmap.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/method/base/combine_parts.h"
#include "common/method/deltas/caps.h"
#include "common/method/deltas/dense_combine.h"
#include "common/method/deltas/gap_encoder.h"
#include "common/method/deltas/payload.h"
#include "common/method/deltas/scale.h"
#include "common/method/deltas/step.h"
#include "common/method/deltas/update_reader.h"

namespace distro {
namespace {

// With fewer groups of blocks a thread costs more than it saves: dense ones have more to do.
constexpr uint32_t kLeastGroupsOfThread = 4, kLeastDenseGroupsOfThread = 1;

std::vector<GroupRange> Cut(uint32_t blocks, int threads, uint32_t least) {
  const uint32_t groups = GroupsOf(blocks);
  const uint32_t parts = std::clamp<uint32_t>(groups / least, 1, threads);
  return CutEvenly<GroupRange>(groups, parts);
}

// What the combination of some groups of blocks says besides their result.
struct GroupCounts {
  uint64_t entries = 0;                  // before download = top
  std::vector<LargestCodes> codes = {};  // [payloads]

  // A payload has this code in a block of this tensor.
  void AddCode(size_t payload, int tensor, uint8_t code) {
    std::optional<uint8_t>& largest = codes[payload][tensor];
    largest = std::max<uint8_t>(largest.value_or(0), code);
  }
};
struct CombinedGroups {
  DeltaGapEncoder result;
  GroupCounts counts;
};

// The updates of a run with K = 4096. DataLoss: one does not decode.
absl::StatusOr<std::vector<DenseUpdate>> OpenAll(const PayloadExpectation& expected,
                                                 absl::Span<const absl::string_view> payloads) {
  std::vector<DenseUpdate> updates;
  for (const absl::string_view payload : payloads) {
    absl::StatusOr<DenseUpdate> update = OpenDenseUpdate(payload, expected);
    if (!update.ok())
      return Damaged(Annotate(update.status(), absl::StrCat("payload ", updates.size())));
    updates.push_back(*update);
  }
  return updates;
}

// A group of an update as PairCounts takes its blocks.
class UnpackedGroup {
 public:
  UnpackedGroup() = default;
  UnpackedGroup(const SentGroup& group, int k) : k_(static_cast<size_t>(k)), empty_(group.empty) {
    for (const uint16_t entry : group.entries) {
      positions_.push_back(SentPosition(entry));
      signs_.push_back(static_cast<int8_t>(SentNegative(entry) ? -1 : 1));
    }
  }

  // Of block after block; valid as long as this.
  SentSigns NextBlock() {
    if (empty_[block_++]) return {};
    const SentSigns sent = {.positions = absl::MakeSpan(positions_).subspan(entry_, k_),
                            .signs = absl::MakeSpan(signs_).subspan(entry_, k_)};
    entry_ += k_;
    return sent;
  }

 private:
  size_t k_ = 0, block_ = 0, entry_ = 0;
  std::array<bool, kGroupBlocks> empty_{};
  std::vector<uint16_t> positions_;
  std::vector<int8_t> signs_;
};

class DeltaRounds final : public RoundMethod {
 public:
  DeltaRounds(const v1::RunConfig& config, std::shared_ptr<const Layout> layout,
              std::vector<bool> as_dct)
      : config_(config), layout_(std::move(layout)), as_dct_(std::move(as_dct)) {}

  v1::StepParameters Step(RoundId round, absl::Span<const uint32_t> medians,
                          const v1::Extension* extension) const override {
    const std::vector<float> rates = LocalRates(config_, round, extension);
    v1::StepParameters step;
    step.set_clip_norm(static_cast<float>(config_.clip_norm()));
    step.set_kept_per_block(config_.kept_per_block());
    v1::DeltaParameters& deltas = *step.mutable_deltas();
    for (const float rate : rates) deltas.add_inner_rate_bits(std::bit_cast<uint32_t>(rate));
    deltas.set_outer_rate_bits(
        std::bit_cast<uint32_t>(static_cast<float>(config_.outer_learning_rate())));
    deltas.set_error_decay(static_cast<float>(config_.error_decay()));
    deltas.set_caps(DeltaCaps(rates, medians, layout_->tensors().size()));
    deltas.set_as_dct(ToBitmap(as_dct_));
    return step;
  }

  std::vector<uint32_t> ScaleMedians(absl::Span<const LargestCodes> workers,
                                     absl::Span<const uint32_t> before) const override {
    return distro::ScaleMedians(workers, before, layout_->tensors().size());
  }

  absl::Status CheckUpdate(absl::string_view payload, RoundPlace place,
                           const v1::StepParameters& step) const override {
    return ValidateDeltaUpdate(payload, Expect(place),
                               BlockCaps(*layout_, place.segment, step.deltas().caps()));
  }

  uint64_t MaxUpdateBytes(SegmentId segment) const override {
    return MaxDeltaUpdateBytes(layout_->SegmentBlocks(segment), kept());
  }

  uint64_t UpdateBytes() const override {
    uint64_t bytes = 0;
    for (SegmentId s(0); s.value() < layout_->segments(); s = s.Next()) bytes += MaxUpdateBytes(s);
    return bytes;
  }

  absl::StatusOr<SegmentResult> Combine(RoundPlace place, absl::Span<const SentPayload> payloads,
                                        int threads, const Clock& clock) const override;
  absl::StatusOr<PairCounts> Compare(RoundPlace place,
                                     absl::Span<const absl::string_view> payloads) const override;

 private:
  absl::StatusOr<PairCounts> CompareSparse(RoundPlace place,
                                           absl::Span<const absl::string_view> payloads) const;
  absl::StatusOr<PairCounts> CompareDense(RoundPlace place,
                                          absl::Span<const absl::string_view> payloads) const;
  int kept() const { return static_cast<int>(config_.kept_per_block()); }
  PayloadExpectation Expect(RoundPlace place) const {
    return ExpectPayload(*layout_, place.round, place.segment, kept());
  }
  MeanRule RuleOf(int64_t weights) const {
    const int floor_256 = static_cast<int>(256 * config_.least_senders() + 0.5);
    return {.divisor = config_.divisor() == v1::DIVISOR_ALL ? Divisor::kAll : Divisor::kSenders,
            .weights = weights,
            .least_senders = LeastSenders(weights, floor_256)};
  }
  // The tensor of each block of a segment.
  std::vector<int> TensorsOf(SegmentId segment) const {
    std::vector<int> tensors(layout_->SegmentBlocks(segment));
    for (const BlockRun& run : layout_->SegmentRuns(segment))
      std::fill_n(tensors.begin() + run.offset, run.blocks, run.tensor);
    return tensors;
  }

  // Input of a thread that combines groups of a segment; borrowed.
  struct SegmentInput {
    PayloadExpectation expected;
    std::vector<WeightedDeltaPayload> payloads;
    int64_t weights = 0;  // of all of them
    std::vector<BlockExtent> extents;
    std::vector<int> tensors;
  };
  absl::StatusOr<CombinedGroups> CombineGroups(const SegmentInput& input, GroupRange range) const;
  GroupCounts CombineDenseGroups(const SegmentInput& input, const std::vector<DenseUpdate>& updates,
                                 GroupRange range, DenseResult* result) const;
  // The result of a segment; `counts` has those of the parts that the threads combined. DataLoss as
  // Combine.
  absl::StatusOr<std::vector<DeltaGapEncoder>> CombineSparse(
      const SegmentInput& input, int threads, std::vector<GroupCounts>* counts) const;
  // The same with K = 4096.
  absl::StatusOr<DenseResult> CombineDense(const SegmentInput& input, int threads,
                                           std::vector<GroupCounts>* counts) const;
  GroupCounts NoCounts(const SegmentInput& input) const {
    return {.codes = std::vector<LargestCodes>(input.payloads.size(),
                                               LargestCodes(layout_->tensors().size()))};
  }

  const v1::RunConfig config_;
  const std::shared_ptr<const Layout> layout_;
  const std::vector<bool> as_dct_;  // [tensors]
};

absl::StatusOr<CombinedGroups> DeltaRounds::CombineGroups(const SegmentInput& input,
                                                          GroupRange range) const {
  CombinedGroups groups = {.result = DeltaGapEncoder(uint64_t{range.count} * kGroupBlocks),
                           .counts = NoCounts(input)};
  const auto kept = config_.download() == v1::DOWNLOAD_MODE_TOP
                        ? std::optional(static_cast<int>(config_.kept_votes_per_block()))
                        : std::nullopt;
  const int64_t first_block = layout_->SegmentFirstBlock(input.expected.segment);
  SparseAccumulator accumulator(RuleOf(input.weights));
  DeltaBlock levels;
  const absl::Status status = VisitSentBlocks(
      input.payloads, input.expected, range,
      [&](uint32_t block, absl::Span<const SparseSent> sent) {
        for (const SparseSent& of : sent)
          groups.counts.AddCode(of.payload, input.tensors[block], of.code);
        if (!kept.has_value()) {
          groups.counts.entries += accumulator.Combine(input.extents[block], sent, &levels);
        } else {
          const DeltaMeans& means = accumulator.MeansOf(input.extents[block], sent);
          groups.counts.entries += means.values.size();
          // The largest before levels, whose rounding would make ties of different means.
          RoundBlock(
              KeepLargest(means, *kept, config_.seed(), input.expected.round, first_block + block),
              0, &levels);
        }
        groups.result.AddBlock(levels);
      });
  if (!status.ok()) return Damaged(status);
  return groups;
}

absl::StatusOr<std::vector<DeltaGapEncoder>> DeltaRounds::CombineSparse(
    const SegmentInput& input, int threads, std::vector<GroupCounts>* counts) const {
  const std::vector<GroupRange> ranges = Cut(input.expected.blocks, threads, kLeastGroupsOfThread);
  std::vector<absl::StatusOr<CombinedGroups>> parts(ranges.size());
  RunParallel(threads, static_cast<int64_t>(ranges.size()),
              [&](int /*thread*/, int64_t i) { parts[i] = CombineGroups(input, ranges[i]); });
  std::vector<DeltaGapEncoder> results;
  for (absl::StatusOr<CombinedGroups>& groups : parts) {
    DISTRO_RETURN_IF_ERROR(groups.status());
    counts->push_back(std::move(groups->counts));
    results.push_back(std::move(groups->result));
  }
  return results;
}

GroupCounts DeltaRounds::CombineDenseGroups(const SegmentInput& input,
                                            const std::vector<DenseUpdate>& updates,
                                            GroupRange range, DenseResult* result) const {
  GroupCounts counts = NoCounts(input);
  DenseAccumulator accumulator(RuleOf(input.weights));
  std::vector<DenseSent> sent;
  const uint32_t end = std::min(input.expected.blocks, (range.first + range.count) * kGroupBlocks);
  for (uint32_t block = range.first * kGroupBlocks; block < end; ++block) {
    sent.clear();
    for (size_t i = 0; i < updates.size(); ++i) {
      if (updates[i].empty(block)) continue;
      const uint8_t code = updates[i].code(block);
      const int64_t weight = input.payloads[i].weight;
      sent.push_back(
          {.signs = updates[i].SignsOf(block), .value = weight * ScaleOf(code), .weight = weight});
      counts.AddCode(i, input.tensors[block], code);
    }
    const DenseBlock combined = accumulator.Combine(
        input.extents[block], sent, result->symbols.data() + uint64_t{block} * kBlockElements);
    result->codes[block] = combined.code;
    counts.entries += combined.entries;
  }
  return counts;
}

absl::StatusOr<DenseResult> DeltaRounds::CombineDense(const SegmentInput& input, int threads,
                                                      std::vector<GroupCounts>* counts) const {
  std::vector<absl::string_view> bytes;
  for (const WeightedDeltaPayload& payload : input.payloads) bytes.push_back(payload.bytes);
  DISTRO_ASSIGN_OR_RETURN(const std::vector<DenseUpdate> updates, OpenAll(input.expected, bytes));
  const uint32_t blocks = input.expected.blocks;
  DenseResult result;
  result.symbols.resize(uint64_t{blocks} * kBlockElements);
  result.codes.resize(blocks);
  const std::vector<GroupRange> ranges = Cut(blocks, threads, kLeastDenseGroupsOfThread);
  counts->resize(ranges.size());
  RunParallel(threads, static_cast<int64_t>(ranges.size()), [&](int /*thread*/, int64_t i) {
    (*counts)[i] = CombineDenseGroups(input, updates, ranges[i], &result);
  });
  return result;
}

absl::StatusOr<SegmentResult> DeltaRounds::Combine(RoundPlace place,
                                                   absl::Span<const SentPayload> payloads,
                                                   int threads, const Clock& clock) const {
  const absl::Duration start = clock.MonotonicNow();
  SegmentInput input = {.expected = Expect(place),
                        .payloads = {},
                        .extents = DeltaExtents(*layout_, as_dct_, place.segment),
                        .tensors = TensorsOf(place.segment)};
  for (const SentPayload& sent : payloads) {
    input.payloads.push_back({.bytes = *sent.bytes, .weight = sent.weight});
    input.weights += sent.weight;
  }
  const absl::Status weights = CheckWeights(input.payloads, RuleOf(input.weights));
  if (!weights.ok()) return Damaged(weights);
  SegmentResult result;
  result.sent_positions =
      payloads.size() * uint64_t{input.expected.blocks} * config_.kept_per_block();
  result.largest_codes.resize(payloads.size());
  std::vector<GroupCounts> counts;
  absl::Duration combined;
  const PayloadIdentity identity = IdentifyPayload(*layout_, place.round, place.segment);
  if (IsDense(kept())) {
    DISTRO_ASSIGN_OR_RETURN(const DenseResult all, CombineDense(input, threads, &counts));
    combined = clock.MonotonicNow();
    FinishResult(EncodeDenseDeltaResult(identity, all), &result);
  } else {
    DISTRO_ASSIGN_OR_RETURN(std::vector<DeltaGapEncoder> all,
                            CombineSparse(input, threads, &counts));
    combined = clock.MonotonicNow();
    FinishResult(EncodeDeltaResult(identity, absl::MakeSpan(all), threads), &result);
  }
  result.combine_time = combined - start;
  result.encode_time = clock.MonotonicNow() - combined;
  for (const GroupCounts& of : counts) {
    result.entries += of.entries;
    for (size_t i = 0; i < payloads.size(); ++i)
      AddLargestCodes(of.codes[i], &result.largest_codes[i]);
  }
  return result;
}

absl::StatusOr<PairCounts> DeltaRounds::Compare(
    RoundPlace place, absl::Span<const absl::string_view> payloads) const {
  return IsDense(kept()) ? CompareDense(place, payloads) : CompareSparse(place, payloads);
}

absl::StatusOr<PairCounts> DeltaRounds::CompareSparse(
    RoundPlace place, absl::Span<const absl::string_view> payloads) const {
  const PayloadExpectation expected = Expect(place);
  const std::vector<BlockExtent> extents = DeltaExtents(*layout_, as_dct_, place.segment);
  std::vector<DeltaUpdateReader> readers;
  for (const absl::string_view payload : payloads) {
    absl::StatusOr<DeltaUpdateReader> reader = DeltaUpdateReader::Create(payload, expected);
    if (!reader.ok()) return Damaged(reader.status());
    readers.push_back(*std::move(reader));
  }
  PairCounts pairs(payloads.size());
  std::vector<UnpackedGroup> unpacked(payloads.size());
  std::vector<SentSigns> sent(payloads.size());
  for (uint32_t first = 0; first < expected.blocks; first += kGroupBlocks) {
    for (size_t i = 0; i < payloads.size(); ++i) {
      SentGroup group = {};
      const absl::Status status = readers[i].NextGroups(absl::MakeSpan(&group, 1));
      if (!status.ok()) return Damaged(status);
      unpacked[i] = UnpackedGroup(group, expected.k);
    }
    const uint32_t end = std::min(expected.blocks, first + kGroupBlocks);
    for (uint32_t block = first; block < end; ++block) {
      for (size_t i = 0; i < payloads.size(); ++i) sent[i] = unpacked[i].NextBlock();
      pairs.AddBlock(extents[block], sent);
    }
  }
  return pairs;
}

absl::StatusOr<PairCounts> DeltaRounds::CompareDense(
    RoundPlace place, absl::Span<const absl::string_view> payloads) const {
  const PayloadExpectation expected = Expect(place);
  DISTRO_ASSIGN_OR_RETURN(const std::vector<DenseUpdate> updates, OpenAll(expected, payloads));
  const std::vector<BlockExtent> extents = DeltaExtents(*layout_, as_dct_, place.segment);
  PairCounts pairs(payloads.size());
  std::vector<absl::string_view> signs(payloads.size());
  for (uint32_t block = 0; block < expected.blocks; ++block) {
    for (size_t i = 0; i < payloads.size(); ++i)
      signs[i] = updates[i].empty(block) ? absl::string_view() : updates[i].SignsOf(block);
    pairs.AddBlock(extents[block], signs);
  }
  return pairs;
}

}  // namespace

std::shared_ptr<const RoundMethod> MakeDeltaRounds(const v1::RunConfig& config,
                                                   std::shared_ptr<const Layout> layout,
                                                   std::vector<bool> as_dct) {
  return std::make_shared<DeltaRounds>(config, std::move(layout), std::move(as_dct));
}

}  // namespace distro
