// Replays whole deltas runs of a second implementation (tests/golden/deltas) through the public
// operations of common/method/deltas and kernels/cpu. The input is x, the outcome of the inner
// steps; records, caps, means, results, parameters and buffers must have the same bits.
#include "tests/testing/golden_deltas.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/method/base/method.h"
#include "common/method/deltas/caps.h"
#include "common/method/deltas/combine.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"
#include "kernels/cpu/deltas_compress.h"
#include "kernels/cpu/deltas_transform.h"
#include "kernels/cpu/reference.h"
#include "kernels/deltas_view.h"
#include "tests/kernels/backends.h"

namespace distro {
namespace {

using testing::Bits;
using testing::GoldenArray;
using testing::GoldenList;

enum Attendance : uint8_t { kAway = 0, kInTime = 1, kTooLate = 2 };

class GoldenDeltasTest : public ::testing::TestWithParam<std::string>,
                         public testing::GoldenDeltas {
 protected:
  GoldenDeltasTest() : GoldenDeltas(GetParam()) {
    for (int64_t w = 0; w < workers_; ++w) error_.emplace_back(layout_);
    Scatter(data_.at("parameter_initial").As<float>(), &parameters_);
  }

  int tensors() const { return static_cast<int>(layout_.tensors().size()); }
  const MatrixShape& matrix(int tensor) const { return layout_.tensors()[tensor].matrix; }
  static void Scatter(absl::Span<const float> flat, TensorBuffer* buffer) {
    for (int i = 0; i < buffer->tensors(); ++i) {
      std::copy_n(flat.begin(), buffer->tensor(i).size(), buffer->tensor(i).begin());
      flat.remove_prefix(buffer->tensor(i).size());
    }
  }
  static std::vector<float> Flat(const TensorBuffer& buffer) {
    std::vector<float> flat;
    for (int i = 0; i < buffer.tensors(); ++i)
      flat.insert(flat.end(), buffer.tensor(i).begin(), buffer.tensor(i).end());
    return flat;
  }

  // Of round t, by tensor.
  std::vector<uint8_t> Caps(int64_t t) const {
    const int64_t steps = data_.at("rate").shape[1];
    std::vector<uint8_t> caps;
    for (const std::optional<uint8_t>& median : medians_)
      caps.push_back(DeltaCap(Row<float>("rate", t, steps), median));
    EXPECT_EQ(absl::MakeConstSpan(caps), Row<uint8_t>("cap", t, tensors()));
    return caps;
  }
  std::vector<uint8_t> OfBlocks(const std::vector<uint8_t>& caps, int64_t first,
                                int64_t count) const {
    std::vector<uint8_t> of_blocks;
    for (const BlockRun& run : layout_.Runs(first, count))
      of_blocks.insert(of_blocks.end(), run.blocks, caps[run.tensor]);
    return of_blocks;
  }

  // The update of worker w, or nullopt when it has nothing to send.
  std::optional<DeltaUpdate> Window(int64_t t, int64_t w, const std::vector<uint8_t>& caps) {
    const auto attendance = At<uint8_t>("attendance", t * workers_ + w);
    if (attendance == kAway || At<uint8_t>("steps", t * workers_ + w) == 0) return std::nullopt;
    TensorBuffer x(layout_);
    Scatter(Row<float>("x", t * workers_ + w, layout_.elements()), &x);
    const auto beta = At<float>("beta", t);
    for (int i = 0; i < tensors(); ++i) {
      if (!DeltaIsFinite(beta, parameters_.tensor(i), x.tensor(i), error_[w].tensor(i)))
        return std::nullopt;
    }
    DeltaUpdate update{.k = k_, .positions = {}, .signs = {}, .codes = {}};
    for (int i = 0; i < tensors(); ++i) {
      FormDelta(beta, parameters_.tensor(i), x.tensor(i), error_[w].tensor(i));
      if (as_dct_[i])
        transform_.AppendLargest(matrix(i), error_[w].tensor(i), caps[i], &update);
      else
        AppendLargest(matrix(i), error_[w].tensor(i), caps[i], &update);
    }
    EXPECT_EQ(ValidateDeltaUpdate(update, OfBlocks(caps, 0, blocks_)), absl::OkStatus());
    if (attendance == kTooLate) return std::nullopt;
    return update;
  }
  void ExpectUpload(int64_t row, const std::optional<DeltaUpdate>& update) const {
    ASSERT_EQ(update.has_value(), At<uint8_t>("sent", row) != 0);
    if (!update.has_value()) return;
    EXPECT_EQ(absl::MakeConstSpan(update->positions), Row<uint16_t>("index", row, blocks_ * k_));
    EXPECT_EQ(absl::MakeConstSpan(update->signs), Row<int8_t>("sign", row, blocks_ * k_));
    std::vector<int16_t> codes;
    for (int64_t b = 0; b < blocks_; ++b)
      codes.push_back(update->empty(b) ? int16_t{-1} : int16_t{update->codes[b]});
    EXPECT_EQ(absl::MakeConstSpan(codes), Row<int16_t>("code", row, blocks_));
  }
  int Weight(int64_t row) const {
    return run_["window"].get<bool>()
               ? StepsWeight(At<uint8_t>("steps", row), run_["inner_steps"].get<int>())
               : 1;
  }

  bool Included(int64_t t, uint32_t segment, int64_t w) const {
    return At<uint8_t>("included", (t * layout_.segments() + segment) * workers_ + w) != 0;
  }
  DeltaUpdate Part(const DeltaUpdate& update, SegmentId segment) const {
    const int64_t first = layout_.SegmentFirstBlock(segment);
    const int64_t end = first + layout_.SegmentBlocks(segment);
    const auto cut = [&](const auto& all, int64_t per_block) {
      return std::decay_t<decltype(all)>(all.begin() + first * per_block,
                                         all.begin() + end * per_block);
    };
    return {.k = k_,
            .positions = cut(update.positions, k_),
            .signs = cut(update.signs, k_),
            .codes = cut(update.codes, 1)};
  }

  // The segment's result. Notes the largest codes that its included workers sent.
  DeltaResult Combine(int64_t t, SegmentId segment,
                      const std::vector<std::optional<DeltaUpdate>>& uploads) {
    std::deque<DeltaUpdate> parts;
    std::vector<WeightedDelta> weighted;
    MeanRule rule = {.divisor = run_["divisor"] == "all" ? Divisor::kAll : Divisor::kSenders,
                     .weights = 0,
                     .least_senders = 0};
    for (int64_t w = 0; w < workers_; ++w) {
      if (!Included(t, segment.value(), w)) continue;
      parts.push_back(Part(*uploads[w], segment));
      weighted.push_back({.update = &parts.back(), .weight = Weight(t * workers_ + w)});
      rule.weights += weighted.back().weight;
      AddLargestCodes(layout_, segment, parts.back(), &largest_[w]);
    }
    rule.least_senders = LeastSenders(rule.weights, run_["floor_256"].get<int>());
    DeltaMeans means = CombineDeltas(weighted, DeltaExtents(layout_, as_dct_, segment), rule);
    const int64_t first = layout_.SegmentFirstBlock(segment);
    ExpectMeans(t * blocks_ + first, means);
    if (!run_["kept"].is_null()) {
      means = KeepLargest(means, run_["kept"].get<int>(), run_["seed"].get<uint64_t>(), RoundId(t),
                          first);
    }
    DeltaResult result = RoundToLevels(means);
    ExpectResult(t * blocks_ + first, result);
    return result;
  }
  // From golden list `row` on, a list a block; golden positions whose mean is 0 are not there.
  void ExpectMeans(int64_t row, const DeltaMeans& means) const {
    std::vector<uint32_t> offsets = {0};
    std::vector<uint16_t> positions;
    std::vector<int64_t> values;
    const GoldenArray& begins = data_.at("sum_offset");
    for (int64_t b = 0; b < means.blocks(); ++b) {
      const auto index = GoldenList<uint16_t>(data_.at("sum_index"), begins, row + b);
      const auto mean = GoldenList<int64_t>(data_.at("mean"), begins, row + b);
      for (size_t i = 0; i < index.size(); ++i) {
        if (mean[i] == 0) continue;
        positions.push_back(index[i]);
        values.push_back(mean[i]);
      }
      offsets.push_back(static_cast<uint32_t>(positions.size()));
    }
    EXPECT_EQ(means, (DeltaMeans{offsets, positions, values}));
  }
  void ExpectResult(int64_t row, const DeltaResult& result) const {
    DeltaResult want;
    const auto append = [&](const std::string& name, int64_t block, auto& to) {
      using T = typename std::decay_t<decltype(to)>::value_type;
      const auto list = GoldenList<T>(data_.at(name), data_.at("result_offset"), block);
      to.insert(to.end(), list.begin(), list.end());
    };
    for (int64_t b = 0; b < result.blocks(); ++b) {
      append("result_index", row + b, want.positions);
      append("result_sign", row + b, want.signs);
      append("result_level", row + b, want.levels);
      want.offsets.push_back(static_cast<uint32_t>(want.positions.size()));
      want.codes.push_back(
          static_cast<uint8_t>(std::max<int>(0, At<int16_t>("result_code", row + b))));
      EXPECT_EQ(want.offsets[b] == want.offsets[b + 1], At<int16_t>("result_code", row + b) < 0);
    }
    EXPECT_EQ(result, want);
  }

  // Applies a result to the parameters, and to the buffers of the included workers.
  void Apply(int64_t t, SegmentId segment, const DeltaResult& result,
             const std::vector<std::optional<DeltaUpdate>>& uploads) {
    const int64_t first = layout_.SegmentFirstBlock(segment);
    for (const BlockRun& run : layout_.SegmentRuns(segment)) {
      const BlockRange blocks = {.first = run.first_block, .count = run.blocks};
      const MatrixShape& shape = matrix(run.tensor);
      const absl::Span<float> p = parameters_.tensor(run.tensor);
      const BlockRange sent = {.first = first + run.offset, .count = run.blocks};
      const DeltasView returned = ViewOf(result, {.first = run.offset, .count = run.blocks});
      EXPECT_TRUE(backend_
                      .ApplyDeltas(shape, blocks,
                                   {.alpha = At<float>("alpha", t), .as_dct = as_dct_[run.tensor]},
                                   returned, p)
                      .ok());
      for (int64_t w = 0; w < workers_; ++w) {
        if (!Included(t, segment.value(), w)) continue;
        const absl::Span<float> e = error_[w].tensor(run.tensor);
        if (as_dct_[run.tensor])
          transform_.SubtractReturned(shape, blocks, ViewOf(*uploads[w], sent), returned, e);
        else
          SubtractReturned(shape, blocks, ViewOf(*uploads[w], sent), returned, e);
      }
    }
  }
  void FollowMedians(int64_t t) {
    for (int i = 0; i < tensors(); ++i) {
      std::vector<uint8_t> codes;
      for (const auto& largest : largest_) {
        if (!largest.empty() && largest[i].has_value()) codes.push_back(*largest[i]);
      }
      medians_[i] = MedianOfLargest(std::move(codes), medians_[i]);
      EXPECT_EQ(medians_[i].has_value() ? *medians_[i] : -1,
                At<int16_t>("median", t * tensors() + i))
          << "tensor " << i;
    }
  }
  void ExpectState(int64_t t) const {
    EXPECT_EQ(Bits(Flat(parameters_)), Bits(Row<float>("parameter", t, layout_.elements())));
    for (int64_t w = 0; w < workers_; ++w) {
      for (int i = 0; i < tensors(); ++i) {
        if (as_dct_[i]) continue;
        EXPECT_EQ(reference::StateHash(0, error_[w].tensor(i)),
                  At<uint64_t>("buffer_hash", (t * workers_ + w) * tensors() + i))
            << "worker " << w << ", tensor " << i;
      }
    }
  }

  // Of tensors whose blocks travel as their DCT the buffer is local arithmetic.
  void ExpectBuffersNear(int64_t t) const {
    if (data_.count("buffer_near") == 0) return;
    for (int64_t w = 0; w < workers_; ++w) {
      const std::vector<float> e = Flat(error_[w]);
      const auto want = Row<float>("buffer_near", t * workers_ + w, layout_.elements());
      for (size_t i = 0; i < e.size(); ++i)
        ASSERT_NEAR(e[i], want[i], 1e-7f) << "worker " << w << ", element " << i;
    }
  }

  void Round(int64_t t) {
    const std::vector<uint8_t> caps = Caps(t);
    std::vector<std::optional<DeltaUpdate>> uploads;
    for (int64_t w = 0; w < workers_; ++w) {
      SCOPED_TRACE(absl::StrCat("worker ", w));
      const int64_t row = t * workers_ + w;
      uploads.push_back(Window(t, w, caps));
      ExpectUpload(row, uploads.back());
      EXPECT_EQ(uploads.back().has_value() ? Weight(row) : 0, At<uint8_t>("weight", row));
    }
    if (HasFailure()) return;
    largest_.assign(workers_, {});
    for (uint32_t s = 0; s < layout_.segments(); ++s) {
      const SegmentId segment(s);
      const DeltaResult result = Combine(t, segment, uploads);
      const std::vector<uint8_t> of_blocks =
          OfBlocks(caps, layout_.SegmentFirstBlock(segment), layout_.SegmentBlocks(segment));
      EXPECT_EQ(ValidateDeltaResult(result, DeltaExtents(layout_, as_dct_, segment), of_blocks),
                absl::OkStatus());
      Apply(t, segment, result, uploads);
    }
    FollowMedians(t);
    ExpectState(t);
    ExpectBuffersNear(t);
  }

  DeltaTransform transform_;
  testing::WaitingBackend backend_{MakeCpuBackend()};
  TensorBuffer parameters_{layout_};
  std::vector<TensorBuffer> error_;  // [workers]: e
  std::vector<std::optional<uint8_t>> medians_ =
      std::vector<std::optional<uint8_t>>(layout_.tensors().size());  // of the round before
  std::vector<std::vector<std::optional<uint8_t>>> largest_;          // [workers][tensors]: codes
};
INSTANTIATE_TEST_SUITE_P(Sets, GoldenDeltasTest, ::testing::Values("k1", "k8", "k32", "dct"),
                         [](const auto& set) { return set.param; });

TEST_P(GoldenDeltasTest, ReplaysTheRounds) {
  ASSERT_EQ(layout_.blocks(), blocks_);
  ASSERT_EQ(layout_.segments(), data_.at("included").shape[1]);
  ASSERT_EQ(k_, run_["k"].get<int>());
  for (int64_t t = 0; t < rounds_ && !HasFailure(); ++t) {
    SCOPED_TRACE(absl::StrCat("round ", t));
    Round(t);
  }
  if (std::ranges::count(as_dct_, true) > 0) return;
  EXPECT_EQ(Bits(Flat(error_.back())), Bits(data_.at("buffer").As<float>()));
}

}  // namespace
}  // namespace distro
