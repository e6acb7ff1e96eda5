#include "common/method/deltas/rounds.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/base/bitmap.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "common/method/base/combine_parts.h"
#include "common/method/deltas/caps.h"
#include "common/method/deltas/payload.h"
#include "common/method/deltas/step.h"

namespace distro {
namespace {

// With fewer groups of blocks a thread costs more than it saves.
constexpr uint32_t kLeastGroupsOfThread = 4;

std::vector<GroupRange> Cut(uint32_t blocks, int threads) {
  const uint32_t groups = (blocks + kGroupBlocks - 1) / kGroupBlocks;
  const uint32_t parts = std::clamp<uint32_t>(groups / kLeastGroupsOfThread, 1, threads);
  return CutEvenly<GroupRange>(groups, parts);
}

// The combination of some groups of blocks.
struct CombinedGroups {
  DeltaResult result;
  uint64_t entries = 0;                  // before download = top
  std::vector<LargestCodes> codes = {};  // [payloads]
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

  const v1::RunConfig config_;
  const std::shared_ptr<const Layout> layout_;
  const std::vector<bool> as_dct_;  // [tensors]
};

absl::StatusOr<CombinedGroups> DeltaRounds::CombineGroups(const SegmentInput& input,
                                                          GroupRange range) const {
  CombinedGroups groups;
  groups.codes.assign(input.payloads.size(), LargestCodes(layout_->tensors().size()));
  const bool top = config_.download() == v1::DOWNLOAD_MODE_TOP;
  const auto kept = static_cast<int>(config_.kept_votes_per_block());
  const int64_t first_block = layout_->SegmentFirstBlock(input.expected.segment);
  const absl::Status status = CombineDeltaPayloads(
      input.payloads, input.expected, input.extents, RuleOf(input.weights), range,
      [&](size_t payload, uint32_t block, const GapBlock<DeltaFormat>& sent) {
        if (sent.count == 0) return;
        std::optional<uint8_t>& largest = groups.codes[payload][input.tensors[block]];
        largest = std::max<uint8_t>(largest.value_or(0), sent.code);
      },
      [&](uint32_t block, const DeltaMeans& means) {
        groups.entries += means.values.size();
        // The largest before levels, whose rounding would make ties of different means.
        AppendLevels(top ? KeepLargest(means, kept, config_.seed(), input.expected.round,
                                       first_block + block)
                         : means,
                     &groups.result);
      });
  if (!status.ok()) return Damaged(status);
  return groups;
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
  const std::vector<GroupRange> ranges = Cut(input.expected.blocks, threads);
  std::vector<absl::StatusOr<CombinedGroups>> parts(ranges.size());
  RunParallel(threads, static_cast<int64_t>(ranges.size()),
              [&](int /*thread*/, int64_t i) { parts[i] = CombineGroups(input, ranges[i]); });
  SegmentResult result;
  result.sent_positions =
      payloads.size() * uint64_t{input.expected.blocks} * config_.kept_per_block();
  result.largest_codes.resize(payloads.size());
  std::vector<DeltaResult> results;
  for (absl::StatusOr<CombinedGroups>& groups : parts) {
    DISTRO_RETURN_IF_ERROR(groups.status());
    result.entries += groups->entries;
    for (size_t i = 0; i < payloads.size(); ++i)
      AddLargestCodes(groups->codes[i], &result.largest_codes[i]);
    results.push_back(std::move(groups->result));
  }
  const DeltaResult all = Concatenate(std::move(results));
  const absl::Duration combined = clock.MonotonicNow();
  FinishResult(EncodeDeltaResult(IdentifyPayload(*layout_, place.round, place.segment), all),
               &result);
  result.combine_time = combined - start;
  result.encode_time = clock.MonotonicNow() - combined;
  return result;
}

absl::StatusOr<PairCounts> DeltaRounds::Compare(
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
  std::vector<SentSigns> sent(payloads.size());
  for (const BlockExtent& extent : extents) {
    for (size_t i = 0; i < payloads.size(); ++i) {
      const absl::StatusOr<const GapBlock<DeltaFormat>*> read = readers[i].NextBlock();
      if (!read.ok()) return Damaged(read.status());
      const GapBlock<DeltaFormat>& of = **read;
      sent[i] = {.positions = absl::MakeSpan(of.positions).first(of.count),
                 .signs = absl::MakeSpan(of.signs).first(of.count)};
    }
    pairs.AddBlock(extent, sent);
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
