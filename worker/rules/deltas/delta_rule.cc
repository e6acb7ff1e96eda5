#include "worker/rules/deltas/delta_rule.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <variant>

#include "common/base/status_macros.h"
#include "common/method/deltas/scale.h"

namespace distro::worker {
namespace {

int64_t BlocksOfAll(absl::Span<const ShardRun> runs) {
  int64_t blocks = 0;
  for (const ShardRun& run : runs) blocks += run.matrix.Blocks();
  return blocks;
}
int64_t PiecesOfAll(absl::Span<const ShardRun> runs) {
  int64_t pieces = 0;
  for (const ShardRun& run : runs) pieces += PiecesOf(run.matrix.elements);
  return pieces;
}

// None: an inner optimizer without elements takes no step.
RunSpans ElementsAt(const std::vector<RunSpans>& elements, size_t array) {
  return array < elements.size() ? elements[array] : RunSpans();
}

double SumOf(absl::Span<const double> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0);
}

}  // namespace

std::vector<int64_t> DeltaBlockBytes(int k) {
  return {static_cast<int64_t>(k * sizeof(uint16_t)), k, 1};
}

DeltaRule::DeltaRule(RuleShard shard, const InnerSettings& settings,
                     std::vector<InnerTensor> tensors, std::vector<bool> as_dct,
                     std::vector<RunSpans> elements)
    : shard_(std::move(shard)),
      parts_(SegmentParts(*shard_.layout, shard_.runs)),
      as_dct_(std::move(as_dct)),
      elements_(std::move(elements)),
      inner_(settings, std::move(tensors), shard_, ElementsAt(elements_, 1),
             ElementsAt(elements_, 2)),
      records_(shard_.device),
      not_finite_(shard_.device),
      returned_(shard_.device),
      moved_(shard_.device),
      buffer_(shard_.device) {}

absl::Status DeltaRule::TakeStep(const v1::StepParameters& step, int index, double norm,
                                 const RunSpans& gradient, const RunSpans& copy) {
  const uint32_t rate = step.deltas().inner_rate_bits(index);
  return Step({.rate = std::bit_cast<float>(rate), .clip_norm = step.clip_norm()}, norm, gradient,
              copy);
}

void DeltaRule::CountLocalSteps(uint64_t steps) {
  sums_.inner_steps += steps;
  inner_.RestoreSteps(inner_.steps() + steps);
}

absl::Status DeltaRule::Step(const InnerStep& step, double norm, const RunSpans& gradient,
                             const RunSpans& x) {
  ++sums_.inner_steps;
  DISTRO_RETURN_IF_ERROR(inner_.Step(step.rate, ClipScale(norm, step.clip_norm), gradient, x));
  return shard_.device->Finish();
}

absl::StatusOr<bool> DeltaRule::IsFinite(const v1::StepParameters& step, const RunSpans& parameters,
                                         const RunSpans& copy) {
  return IsFinite(step.deltas().error_decay(), parameters, copy);
}

absl::StatusOr<bool> DeltaRule::IsFinite(float beta, const RunSpans& begin, const RunSpans& x) {
  DISTRO_RETURN_IF_ERROR(not_finite_.Resize(1));
  not_finite_.Fill(0);
  for (size_t i = 0; i < x.size(); ++i) {
    shard_.deltas->FindNotFinite(beta, begin[i], x[i], error()[i], not_finite_.device().data());
  }
  not_finite_.CopyOut();
  DISTRO_RETURN_IF_ERROR(shard_.device->Finish());
  return not_finite_.host()[0] == 0;
}

absl::Status DeltaRule::Compress(const v1::StepParameters& step, const RunSpans& parameters,
                                 const RunSpans& copy) {
  const std::string& caps = step.deltas().caps();
  return Compress({.beta = step.deltas().error_decay(),
                   .k = static_cast<int>(step.kept_per_block()),
                   .caps = {caps.begin(), caps.end()}},
                  parameters, copy);
}

absl::Status DeltaRule::Compress(const DeltaRound& round, const RunSpans& begin,
                                 const RunSpans& x) {
  is_pending_ = false;
  DISTRO_RETURN_IF_ERROR(records_.Resize(BlocksOfAll(shard_.runs), round.k));
  DISTRO_RETURN_IF_ERROR(moved_.Resize(PiecesOfAll(shard_.runs)));
  DISTRO_RETURN_IF_ERROR(buffer_.Resize(PiecesOfAll(shard_.runs)));
  int64_t first = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const ShardRun& run = shard_.runs[i];
    const BlockRange blocks = {.first = first, .count = run.matrix.Blocks()};
    shard_.deltas->Compress(
        run.matrix,
        {.beta = round.beta, .cap = round.caps[run.tensor], .as_dct = as_dct_[run.tensor]},
        begin[i], x[i], error()[i], records_.OnDevice(blocks));
    first += blocks.count;
  }
  records_.CopyOut();
  SumSquares(begin, x);
  DISTRO_RETURN_IF_ERROR(shard_.device->Finish());
  sums_.update = SumsOf(round);
  is_pending_ = true;
  return absl::OkStatus();
}

absl::Status DeltaRule::Abandon() {
  is_pending_ = false;
  inner_.Reset();
  return shard_.device->Finish();
}

absl::Status DeltaRule::Forget() {
  for (const absl::Span<float> e : error())
    shard_.device->Fill(e.data(), 0, e.size() * sizeof(float));
  return Abandon();
}

absl::Status DeltaRule::Lookahead(float /*eta*/, const RunSpans& /*parameters*/,
                                  const RunSpans& /*out*/) {
  return absl::FailedPreconditionError("deltas have no lookahead copy");
}

std::vector<absl::string_view> DeltaRule::pending() const {
  const DeltaRecordsView records = records_.host();
  return {BytesOf(records.positions), BytesOf(records.signs), BytesOf(records.codes)};
}

absl::Status DeltaRule::RestorePending(const PendingUpdate& pending) {
  const BlockPieces pieces = PendingOfParts(parts_, pending, DeltaBlockBytes(pending.k));
  DISTRO_RETURN_IF_ERROR(records_.Assign({.k = pending.k,
                                          .positions = NumbersOf<uint16_t>(pieces[0]),
                                          .signs = NumbersOf<int8_t>(pieces[1]),
                                          .codes = NumbersOf<uint8_t>(pieces[2])}));
  DISTRO_RETURN_IF_ERROR(shard_.device->Finish());
  is_pending_ = true;
  return absl::OkStatus();
}

int DeltaRule::CountInside(int64_t record, size_t run, int64_t block) const {
  const DeltaRecordsView update = records_.host();
  if (update.empty(record)) return 0;
  if (as_dct_[shard_.runs[run].tensor]) return update.k;
  return std::min(update.k, ExtentOf(shard_.runs[run].matrix, block).Elements());
}

int64_t DeltaRule::CountSent(absl::Span<const DeltaResult* const> results) const {
  int64_t sent = 0;
  for (const SegmentPart& part : parts_) {
    if (results[part.segment.value()] == nullptr) continue;
    for (int64_t b = 0; b < part.blocks.count; ++b)
      sent += CountInside(part.first_pending + b, part.run, part.blocks.first + b);
  }
  return sent;
}

void DeltaRule::SumSquares(const RunSpans& begin, const RunSpans& x) {
  int64_t first = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t pieces = PiecesOf(shard_.runs[i].matrix.elements);
    shard_.deltas->SumSquares(begin[i], x[i], error()[i],
                              {.moved = moved_.device().subspan(first, pieces),
                               .buffer = buffer_.device().subspan(first, pieces)});
    first += pieces;
  }
  moved_.CopyOut();
  buffer_.CopyOut();
}

DeltaSums::Update DeltaRule::SumsOf(const DeltaRound& round) const {
  const DeltaRecordsView update = records_.host();
  DeltaSums::Update sums;
  sums.done = SumOf(moved_.host());
  sums.buffer = SumOf(buffer_.host());
  int64_t record = 0;
  for (size_t i = 0; i < shard_.runs.size(); ++i) {
    for (int64_t b = 0; b < shard_.runs[i].matrix.Blocks(); ++b, ++record) {
      if (update.empty(record)) continue;
      const uint8_t code = update.codes[record];
      const double scale = std::ldexp(static_cast<double>(ScaleOf(code)), -kScaleUnitBits);
      sums.said += CountInside(record, i, b) * scale * scale;
      ++sums.records;
      sums.capped += code == round.caps[shard_.runs[i].tensor] ? 1 : 0;
    }
  }
  return sums;
}

absl::Status DeltaRule::Feedback(const CommittedRound& round, const DecodedRound& decoded,
                                 int member) {
  const auto* const deltas = std::get_if<std::vector<DeltaResult>>(&decoded);
  if (deltas == nullptr || deltas->size() != shard_.layout->segments())
    return absl::FailedPreconditionError("feedback of a round of deltas that was not applied");
  std::vector<const DeltaResult*> results;
  for (uint32_t i = 0; i < deltas->size(); ++i)
    results.push_back(round.Included(member, SegmentId(i)) ? &(*deltas)[i] : nullptr);
  return Feedback(results);
}

absl::Status DeltaRule::Feedback(absl::Span<const DeltaResult* const> results) {
  const bool was_pending = std::exchange(is_pending_, false);
  const auto included = [](const DeltaResult* result) { return result != nullptr; };
  if (!was_pending || std::ranges::none_of(results, included)) return absl::OkStatus();
  DISTRO_RETURN_IF_ERROR(returned_.Resize(1));
  returned_.Fill(0);
  for (const SegmentPart& part : parts_) {
    const DeltaResult* const result = results[part.segment.value()];
    if (result == nullptr) continue;
    const ShardRun& run = shard_.runs[part.run];
    const SegmentDeltas segment =
        shard_.result == nullptr ? OnHost(*result) : shard_.result->DeltasOf(part.segment);
    const int64_t blocks = part.blocks.count;
    shard_.deltas->Feedback(run.matrix, part.blocks, as_dct_[run.tensor],
                            records_.OnDevice({.first = part.first_pending, .count = blocks}),
                            ViewOf(segment, {.first = part.first_in_segment, .count = blocks}),
                            error()[part.run], returned_.device().data());
  }
  returned_.CopyOut();
  sums_.sent = CountSent(results);  // while the device works
  DISTRO_RETURN_IF_ERROR(shard_.device->Finish());
  sums_.returned = static_cast<int64_t>(returned_.host()[0]);
  return absl::OkStatus();
}

}  // namespace distro::worker
