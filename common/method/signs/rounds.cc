#include "common/method/signs/rounds.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "common/method/base/combine_parts.h"
#include "common/method/signs/combine.h"
#include "common/method/signs/payload.h"
#include "common/method/signs/record_codec.h"
#include "common/method/signs/step.h"
#include "common/method/signs/update_reader.h"

namespace distro {
namespace {

// With fewer, a thread costs more than it saves.
constexpr uint32_t kLeastBlocksOfThread = 512;

std::vector<SegmentRange> Cut(const PayloadExpectation& expected, int threads) {
  // Gaps are read from the start of a segment, records from any block.
  const uint32_t parts =
      expected.k > kMaxRecordK
          ? 1
          : std::clamp<uint32_t>(expected.blocks / kLeastBlocksOfThread, 1, threads);
  return CutEvenly<SegmentRange>(expected.blocks, parts);
}

// The votes of the blocks of a segment.
struct Part {
  Votes all;
  Votes strongest;  // with download = top
};

class SignRounds final : public RoundMethod {
 public:
  SignRounds(const v1::RunConfig& config, std::shared_ptr<const Layout> layout)
      : config_(config), layout_(std::move(layout)) {}

  v1::StepParameters Step(RoundId round, absl::Span<const uint32_t> /*medians*/,
                          const v1::Extension* extension) const override {
    return SignStep(config_, round, extension);
  }

  std::vector<uint32_t> ScaleMedians(absl::Span<const LargestCodes> /*workers*/,
                                     absl::Span<const uint32_t> /*before*/) const override {
    return {};
  }

  absl::Status CheckUpdate(absl::string_view payload, RoundPlace place,
                           const v1::StepParameters& /*step*/) const override {
    return ValidateSignUpdate(payload, Expect(place));
  }

  uint64_t MaxUpdateBytes(SegmentId segment) const override {
    return MaxSignUpdateBytes(layout_->SegmentBlocks(segment), kept());
  }

  // Exact for records (K <= 8); for the other codec an upper bound.
  uint64_t UpdateBytes() const override {
    uint64_t bytes = 0;
    for (SegmentId s(0); s.value() < layout_->segments(); s = s.Next()) {
      const auto blocks = static_cast<uint64_t>(layout_->SegmentBlocks(s));
      bytes += kept() <= kMaxRecordK ? SignRecordUpdateBytes(blocks, kept())
                                     : MaxSignUpdateBytes(blocks, kept());
    }
    return bytes;
  }

  absl::StatusOr<SegmentResult> Combine(RoundPlace place, absl::Span<const SentPayload> payloads,
                                        int threads, const Clock& clock) const override;

  absl::StatusOr<PairCounts> Compare(RoundPlace place,
                                     absl::Span<const absl::string_view> payloads) const override;

 private:
  int kept() const { return static_cast<int>(config_.kept_per_block()); }
  bool cuts() const { return config_.download() == v1::DOWNLOAD_MODE_TOP; }
  PayloadExpectation Expect(RoundPlace place) const {
    return ExpectPayload(*layout_, place.round, place.segment, kept());
  }
  absl::StatusOr<Part> CombineBlocks(absl::Span<const WeightedSignPayload> payloads,
                                     const PayloadExpectation& expected, SegmentRange range) const;

  const v1::RunConfig config_;
  const std::shared_ptr<const Layout> layout_;
};

absl::StatusOr<Part> SignRounds::CombineBlocks(absl::Span<const WeightedSignPayload> payloads,
                                               const PayloadExpectation& expected,
                                               SegmentRange range) const {
  absl::StatusOr<Votes> votes = CombineSignPayloads(payloads, expected, range);
  if (!votes.ok()) return Damaged(votes.status());
  Part part = {.all = *std::move(votes), .strongest = {}};
  if (cuts()) {
    part.strongest =
        KeepTop(part.all, static_cast<int>(config_.kept_votes_per_block()), config_.seed(),
                expected.round, layout_->SegmentFirstBlock(expected.segment) + range.first);
  }
  return part;
}

absl::StatusOr<SegmentResult> SignRounds::Combine(RoundPlace place,
                                                  absl::Span<const SentPayload> payloads,
                                                  int threads, const Clock& clock) const {
  const PayloadExpectation expected = Expect(place);
  const absl::Duration start = clock.MonotonicNow();
  std::vector<WeightedSignPayload> weighted;
  for (const SentPayload& sent : payloads)
    weighted.push_back({.bytes = *sent.bytes, .weight = sent.weight});
  const std::vector<SegmentRange> ranges = Cut(expected, threads);
  std::vector<absl::StatusOr<Part>> parts(ranges.size());
  RunParallel(threads, static_cast<int64_t>(ranges.size()), [&](int /*thread*/, int64_t i) {
    parts[i] = CombineBlocks(weighted, expected, ranges[i]);
  });
  SegmentResult result;
  result.sent_positions = payloads.size() * uint64_t{expected.blocks} * config_.kept_per_block();
  uint64_t agreement = 0;
  std::vector<Votes> all, strongest;
  for (absl::StatusOr<Part>& part : parts) {
    DISTRO_RETURN_IF_ERROR(part.status());
    result.entries += part->all.values.size();
    for (const int16_t value : part->all.values)
      agreement += static_cast<uint64_t>(std::abs(value));
    all.push_back(std::move(part->all));
    strongest.push_back(std::move(part->strongest));
  }
  result.agreement = agreement;
  Votes votes = Concatenate(std::move(cuts() ? strongest : all));
  const absl::Duration combined = clock.MonotonicNow();
  FinishResult(EncodeVotes(IdentifyPayload(*layout_, place.round, place.segment), votes), &result);
  result.combine_time = combined - start;
  result.encode_time = clock.MonotonicNow() - combined;
  return result;
}

absl::StatusOr<PairCounts> SignRounds::Compare(RoundPlace place,
                                               absl::Span<const absl::string_view> payloads) const {
  const PayloadExpectation expected = Expect(place);
  std::vector<SignUpdateReader> readers;
  for (const absl::string_view payload : payloads) {
    absl::StatusOr<SignUpdateReader> reader = SignUpdateReader::Create(payload, expected);
    if (!reader.ok()) return Damaged(reader.status());
    readers.push_back(*std::move(reader));
  }
  PairCounts pairs(payloads.size());
  std::vector<SentSigns> sent(payloads.size());
  for (uint32_t block = 0; block < expected.blocks; ++block) {
    for (size_t i = 0; i < payloads.size(); ++i) {
      const absl::Status read = readers[i].NextBlock(&sent[i].positions, &sent[i].signs);
      if (!read.ok()) return Damaged(read);
    }
    pairs.AddBlock(BlockExtent(), sent);
  }
  return pairs;
}

}  // namespace

std::shared_ptr<const RoundMethod> MakeSignRounds(const v1::RunConfig& config,
                                                  std::shared_ptr<const Layout> layout) {
  return std::make_shared<SignRounds>(config, std::move(layout));
}

}  // namespace distro
