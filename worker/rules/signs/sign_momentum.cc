#include "worker/rules/signs/sign_momentum.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/method/methods.h"
#include "common/method/signs/payload.h"
#include "worker/rules/segment_parts.h"
#include "worker/rules/update_rule.h"

namespace distro::worker {
namespace {

// The arrays of a pending update: positions u16 [blocks, K], then the coefficients there, f32
// [blocks, K].
std::vector<int64_t> BlockBytesOf(int k) {
  return {static_cast<int64_t>(k * sizeof(uint16_t)), static_cast<int64_t>(k * sizeof(float))};
}

absl::Status CheckPositions(int k, const BlockPieces& segment) {
  const auto positions = NumbersOf<uint16_t>(segment[0]);
  for (size_t i = 0; i < positions.size(); ++i) {
    const bool follows = i % k == 0 || positions[i] > positions[i - 1];
    if (positions[i] < kBlockElements && follows) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("position ", positions[i], " of the pending update"));
  }
  return absl::OkStatus();
}

std::string Encode(const PayloadIdentity& identity, int k, const BlockPieces& segment) {
  SignUpdate update{.k = k, .positions = {}, .signs = {}};
  AppendSigns(NumbersOf<uint16_t>(segment[0]), NumbersOf<float>(segment[1]), &update);
  return EncodeSignUpdate(identity, update);
}

SignCompressOptions OptionsOf(const v1::StepParameters& step, double norm) {
  return {.beta = step.beta(),
          .eta = std::bit_cast<float>(step.eta_bits()),
          .gradient_scale = ClipScale(norm, step.clip_norm()),
          .k = static_cast<int>(step.kept_per_block())};
}

// Entries [first, first + blocks) of a [blocks, K] array, on the device.
template <typename T>
absl::Span<T> Entries(TwinArray<T>& array, int64_t first, int64_t blocks, int kept) {
  return array.device().subspan(first * kept, blocks * kept);
}

class SignMomentum final : public UpdateRule {
 public:
  SignMomentum(RuleShard shard, std::vector<RunSpans> elements)
      : shard_(std::move(shard)),
        elements_(std::move(elements)),
        parts_(SegmentParts(*shard_.layout, shard_.runs)),
        positions_(shard_.device),
        values_(shard_.device) {
    for (const ShardRun& run : shard_.runs) {
      first_pending_.push_back(blocks_);
      blocks_ += run.matrix.Blocks();
    }
  }

  absl::Status TakeStep(const v1::StepParameters& /*step*/, int /*index*/, double norm,
                        const RunSpans& gradient, const RunSpans& /*copy*/) override {
    norm_ = norm;
    gradient_ = gradient;
    return absl::OkStatus();
  }

  absl::Status Compress(const v1::StepParameters& step, const RunSpans& /*parameters*/,
                        const RunSpans& /*copy*/) override {
    const SignCompressOptions options = OptionsOf(step, norm_);
    DISTRO_RETURN_IF_ERROR(ResizePending(options.k));
    std::vector<TensorMomentum> tensors;
    for (size_t i = 0; i < shard_.runs.size(); ++i) {
      const MatrixShape& matrix = shard_.runs[i].matrix;
      const int64_t blocks = matrix.Blocks();
      tensors.push_back({.matrix = matrix,
                         .blocks = {.first = 0, .count = blocks},
                         .gradient = gradient_[i],
                         .momentum = momentum()[i],
                         .positions = Entries(positions_, first_pending_[i], blocks, kept_),
                         .values = Entries(values_, first_pending_[i], blocks, kept_)});
    }
    shard_.backend->CompressSigns(options, tensors);
    positions_.CopyOut();
    values_.CopyOut();
    return shard_.device->Finish();
  }

  absl::Status Feedback(const CommittedRound& round, const DecodedRound& /*decoded*/,
                        int member) override {
    for (const SegmentPart& part : parts_) {
      if (!round.Included(member, part.segment)) continue;
      const int64_t first = part.first_pending, blocks = part.blocks.count;
      shard_.backend->FeedbackSigns(shard_.runs[part.run].matrix, part.blocks, kept_,
                                    Entries(positions_, first, blocks, kept_),
                                    Entries(values_, first, blocks, kept_), momentum()[part.run]);
    }
    return shard_.device->Finish();
  }

  absl::Status Lookahead(float eta, const RunSpans& parameters, const RunSpans& out) override {
    for (size_t i = 0; i < shard_.runs.size(); ++i)
      shard_.backend->Lookahead(eta, parameters[i], momentum()[i], out[i]);
    return shard_.device->Finish();
  }

  absl::Span<const RunSpans> elements() const override { return elements_; }

  std::vector<absl::string_view> pending() const override {
    return {BytesOf(positions_.host()), BytesOf(values_.host())};
  }

  absl::Status RestorePending(const PendingUpdate& pending) override {
    DISTRO_RETURN_IF_ERROR(ResizePending(pending.k));
    const BlockPieces pieces = PendingOfParts(parts_, pending, BlockBytesOf(kept_));
    std::ranges::copy(NumbersOf<uint16_t>(pieces[0]), positions_.host().begin());
    std::ranges::copy(NumbersOf<float>(pieces[1]), values_.host().begin());
    positions_.CopyIn();
    values_.CopyIn();
    return shard_.device->Finish();
  }

 private:
  const RunSpans& momentum() const { return elements_[0]; }

  absl::Status ResizePending(int kept) {
    kept_ = kept;
    DISTRO_RETURN_IF_ERROR(positions_.Resize(blocks_ * kept));
    return values_.Resize(blocks_ * kept);
  }

  const RuleShard shard_;
  const std::vector<RunSpans> elements_;  // [1]: the momentum
  const std::vector<SegmentPart> parts_;
  std::vector<int64_t> first_pending_;  // [runs]
  int64_t blocks_ = 0;
  int kept_ = 0;  // K of the pending update
  // The gradient that is not compressed yet.
  double norm_ = 0;
  RunSpans gradient_;
  TwinArray<uint16_t> positions_;
  TwinArray<float> values_;
};

}  // namespace

void AppendSigns(absl::Span<const uint16_t> positions, absl::Span<const float> values,
                 SignUpdate* update) {
  const size_t before = update->signs.size(), k = update->k;
  update->positions.resize(before + values.size());
  update->signs.resize(before + values.size());
  for (size_t begin = 0; begin < values.size(); begin += k) {
    const auto block = values.subspan(begin, k);
    if (std::all_of(block.begin(), block.end(), [](float c) { return c == 0; })) continue;
    std::copy_n(positions.begin() + begin, k, update->positions.begin() + before + begin);
    std::transform(block.begin(), block.end(), update->signs.begin() + before + begin,
                   [](float c) { return static_cast<int8_t>(c < 0 ? -1 : 1); });
  }
}

const UpdateRuleKind kSignMomentum = {
    .accepts =
        [](const v1::StepParameters& step) { return MethodNumberOf(step) == v1::METHOD_SIGNS; },
    .rates =
        [](const v1::StepParameters& step) {
          return std::vector<float>{std::bit_cast<float>(step.eta_bits())};
        },
    .element_arrays = 1,
    .block_bytes = BlockBytesOf,
    .check = CheckPositions,
    .encode = Encode,
    .make = [](RuleShard shard, std::vector<RunSpans> elements) -> std::unique_ptr<UpdateRule> {
      return std::make_unique<SignMomentum>(std::move(shard), std::move(elements));
    }};

}  // namespace distro::worker
