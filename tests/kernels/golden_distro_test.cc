// Replays the golden rounds through the public operations: several workers and rounds with
// clipping, inclusion by segment, 1-D tensors and padding. Selections, votes, directions and
// parameters must have the same bits.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/json.h"
#include "common/method/signs/votes.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"
#include "tests/kernels/backends.h"
#include "tests/testing/golden.h"

namespace distro {
namespace {

using testing::GoldenArray;

constexpr double kTolerance = 2e-6;  // of the largest magnitude, as the data's description states

double Largest(absl::Span<const float> x) {
  double largest = 0;
  for (float value : x) largest = std::max(largest, std::abs(double{value}));
  return largest;
}

void ExpectClose(absl::Span<const float> got, absl::Span<const float> want,
                 const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  const double tolerance = kTolerance * Largest(want);
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got[i], want[i], tolerance) << what << " " << i;
}

struct GoldenRun {
  nlohmann::json json;
  Layout layout;
};

// The order of the data's tensors may differ from the manifest's order, so they get names that sort
// in the data's order.
GoldenRun LoadRun() {
  absl::StatusOr<std::string> text = ReadFile(testing::GoldenDir() + "/distro/run.json");
  nlohmann::json json = ParseJson(*text).value();
  std::vector<TensorSpec> tensors;
  for (const nlohmann::json& tensor : json["tensors"]) {
    tensors.push_back({.name = std::string(1, static_cast<char>('a' + tensors.size())),
                       .shape = tensor[1].get<std::vector<int64_t>>()});
  }
  Layout layout =
      Layout::Create(Manifest::Create(tensors).value(), json["segment_blocks"].get<int>()).value();
  return {json, std::move(layout)};
}

class GoldenDistroTest : public testing::BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped()) return;
    const std::vector<int64_t>& shape = data_["index"].shape;
    steps_ = shape[0], workers_ = shape[1], blocks_ = shape[2], k_ = static_cast<int>(shape[3]);
    for (int64_t w = 0; w < workers_; ++w) momentum_.emplace_back(layout());
    Scatter(data_["parameter_initial"].As<float>(), parameters_);
    positions_.resize(blocks_ * k_);
    values_.resize(blocks_ * k_);
  }
  const Layout& layout() const { return run_.layout; }
  int tensors() const { return static_cast<int>(layout().tensors().size()); }
  int64_t n() const { return layout().elements(); }

  template <typename T>
  absl::Span<const T> Row(const std::string& name, int64_t row, int64_t size) {
    return data_[name].As<T>().subspan(row * size, size);
  }
  void Scatter(absl::Span<const float> flat, TensorBuffer& buffer) const {
    for (int i = 0; i < tensors(); ++i) {
      std::copy_n(flat.begin(), buffer.tensor(i).size(), buffer.tensor(i).begin());
      flat.remove_prefix(buffer.tensor(i).size());
    }
  }
  std::vector<float> Flat(const TensorBuffer& buffer) const {
    std::vector<float> flat;
    for (int i = 0; i < tensors(); ++i)
      flat.insert(flat.end(), buffer.tensor(i).begin(), buffer.tensor(i).end());
    return flat;
  }

  TensorBuffer Gradient(int64_t t, int64_t w) {
    std::vector<float> flat;
    const float scale = run_.json["gradient_scale"].get<float>();
    for (int16_t q : Row<int16_t>("gradient", t * workers_ + w, n()))
      flat.push_back(static_cast<float>(q) * scale);
    TensorBuffer gradient(layout());
    Scatter(flat, gradient);
    return gradient;
  }
  double GradientNorm(const TensorBuffer& gradient) {
    double sum = 0;
    for (int i = 0; i < tensors(); ++i) {
      sum += backend_->SumOfSquares(layout().tensors()[i].matrix, gradient.tensor(i));
    }
    return std::sqrt(sum);
  }

  void Compress(int64_t t, int64_t w) {
    const TensorBuffer gradient = Gradient(t, w);
    const double norm = GradientNorm(gradient),
                 want = data_["gradient_norm"].As<double>()[t * workers_ + w];
    EXPECT_NEAR(norm, want, 1e-6 * want);
    const SignCompressOptions options = {
        .beta = run_.json["beta"].get<float>(),
        .eta = data_["eta"].As<float>()[t],
        .gradient_scale = static_cast<float>(std::min(1.0, run_.json["clip"].get<double>() / norm)),
        .k = k_};
    for (const BlockRun& part : layout().Runs(0, blocks_)) {
      backend_->CompressSigns(
          layout().tensors()[part.tensor].matrix, {part.first_block, part.blocks}, options,
          gradient.tensor(part.tensor), momentum_[w].tensor(part.tensor),
          absl::MakeSpan(positions_).subspan(part.offset * k_, part.blocks * k_),
          absl::MakeSpan(values_).subspan(part.offset * k_, part.blocks * k_));
    }
    ExpectUpload(t * workers_ + w);
  }

  void ExpectUpload(int64_t row) {
    EXPECT_EQ(absl::MakeConstSpan(positions_), Row<uint16_t>("index", row, blocks_ * k_));
    ExpectClose(values_, Row<float>("value", row, blocks_ * k_), "value");
    const auto signs = Row<int8_t>("sign", row, blocks_ * k_);
    for (size_t i = 0; i < values_.size(); ++i) ASSERT_EQ(values_[i] < 0 ? -1 : 1, signs[i]) << i;
  }

  bool Included(int64_t t, uint32_t segment, int64_t w) {
    return data_["included"].As<uint8_t>()[(t * layout().segments() + segment) * workers_ + w] != 0;
  }

  // Adds the worker's votes, with its weight, and feeds back, segment by segment, where it is
  // included.
  void Send(int64_t t, int64_t w, std::vector<int>& votes) {
    const int weight = run_.json["weights"][w].get<int>();
    for (uint32_t s = 0; s < layout().segments(); ++s) {
      if (!Included(t, s, w)) continue;
      const int64_t first = layout().SegmentFirstBlock(SegmentId(s));
      for (int64_t i = first * k_; i < (first + layout().SegmentBlocks(SegmentId(s))) * k_; ++i) {
        votes[i / k_ * kBlockElements + positions_[i]] += values_[i] < 0 ? -weight : weight;
      }
      for (const BlockRun& part : layout().SegmentRuns(SegmentId(s))) Feedback(w, part, first);
    }
  }
  void Feedback(int64_t w, const BlockRun& part, int64_t first) {
    const int64_t at = (first + part.offset) * k_;
    backend_->FeedbackSigns(layout().tensors()[part.tensor].matrix, {part.first_block, part.blocks},
                            k_, absl::MakeConstSpan(positions_).subspan(at, part.blocks * k_),
                            absl::MakeConstSpan(values_).subspan(at, part.blocks * k_),
                            momentum_[w].tensor(part.tensor));
  }

  static Votes Sparse(const std::vector<int>& dense) {
    Votes votes;
    for (size_t i = 0; i < dense.size(); ++i) {
      if (dense[i] != 0) {
        votes.positions.push_back(static_cast<uint16_t>(i % kBlockElements));
        votes.values.push_back(static_cast<int16_t>(dense[i]));
      }
      if (i % kBlockElements == kBlockElements - 1) votes.offsets.push_back(votes.positions.size());
    }
    return votes;
  }
  void ExpectVotes(int64_t t, const Votes& votes) {
    const auto offsets = data_["vote_offset"].As<uint32_t>().subspan(t * blocks_, blocks_ + 1);
    for (int64_t b = 0; b <= blocks_; ++b) ASSERT_EQ(votes.offsets[b], offsets[b] - offsets[0]);
    const size_t entries = offsets[blocks_] - offsets[0];
    EXPECT_EQ(absl::MakeConstSpan(votes.positions),
              data_["vote_index"].As<uint16_t>().subspan(offsets[0], entries));
    EXPECT_EQ(absl::MakeConstSpan(votes.values),
              data_["vote_value"].As<int16_t>().subspan(offsets[0], entries));
  }

  // `eta`, `eta_lambda` of tensors that decay.
  void Apply(const Votes& votes, float eta, float eta_lambda, TensorBuffer& parameters) {
    for (const BlockRun& part : layout().Runs(0, blocks_)) {
      const TensorLayout& tensor = layout().tensors()[part.tensor];
      const uint32_t begin = votes.offsets[part.offset],
                     end = votes.offsets[part.offset + part.blocks];
      const VotesView view = {
          absl::MakeConstSpan(votes.offsets).subspan(part.offset, part.blocks + 1),
          absl::MakeConstSpan(votes.positions).subspan(begin, end - begin),
          absl::MakeConstSpan(votes.values).subspan(begin, end - begin)};
      const SignApplyOptions options = {.eta = eta,
                                        .eta_lambda = tensor.decays ? eta_lambda : 0.0f};
      ASSERT_TRUE(backend_
                      ->ApplyVotes(tensor.matrix, {part.first_block, part.blocks}, options, view,
                                   parameters.tensor(part.tensor))
                      .ok());
    }
  }

  void ExpectDirection(int64_t t, const Votes& votes) {
    TensorBuffer zero(layout());
    Apply(votes, 1.0f, 0.0f, zero);
    const std::vector<float> minus = Flat(zero);
    const auto want = Row<int8_t>("direction", t, n());
    for (int64_t i = 0; i < n(); ++i) ASSERT_EQ(-minus[i], static_cast<float>(want[i])) << i;
  }

  // Where overlap 1 would take the next gradient: the last worker, the last two steps.
  void ExpectLookahead(int64_t t) {
    const int64_t row = t - (steps_ - data_["lookahead"].shape[0]);
    if (row < 0) return;
    const std::vector<float> p = Flat(parameters_), m = Flat(momentum_.back());
    std::vector<float> out(n());
    backend_->Lookahead(data_["eta"].As<float>()[t], p, m, absl::MakeSpan(out));
    const auto want = Row<float>("lookahead", row, n());
    for (int64_t i = 0; i < n(); ++i) {
      if (std::abs(m[i]) > kTolerance * Largest(m)) {
        ASSERT_TRUE(testing::SameBits(out[i], want[i])) << i;
      }
    }
  }

  // Larger arrays that a folder need not have.
  void ExpectMomentum(int64_t t) {
    const std::vector<int> steps = run_.json["momentum_steps"].get<std::vector<int>>();
    const auto at = std::find(steps.begin(), steps.end(), t);
    if (at == steps.end()) return;
    for (int64_t w = 0; w < workers_; ++w) {
      ExpectClose(Flat(momentum_[w]),
                  Row<float>("momentum", (at - steps.begin()) * workers_ + w, n()), "momentum");
    }
  }

  GoldenRun run_ = LoadRun();
  std::map<std::string, GoldenArray> data_ = testing::LoadGolden("distro");
  int64_t steps_ = 0, workers_ = 0, blocks_ = 0;
  int k_ = 0;
  std::vector<TensorBuffer> momentum_;
  TensorBuffer parameters_{layout()};
  std::vector<uint16_t> positions_;
  std::vector<float> values_;
};
INSTANTIATE_TEST_SUITE_P(All, GoldenDistroTest, ::testing::ValuesIn(testing::AllBackends()),
                         testing::BackendName);

TEST_P(GoldenDistroTest, ReplaysTheRounds) {
  ASSERT_EQ(layout().blocks(), blocks_);
  ASSERT_EQ(layout().segments(), data_["included"].shape[1]);
  for (int64_t t = 0; t < steps_; ++t) {
    SCOPED_TRACE(absl::StrCat("step ", t));
    std::vector<int> dense(blocks_ * kBlockElements);
    for (int64_t w = 0; w < workers_; ++w) {
      Compress(t, w);
      if (w == workers_ - 1) ExpectLookahead(t);
      Send(t, w, dense);
    }
    ExpectMomentum(t);
    const Votes votes = Sparse(dense);
    ExpectVotes(t, votes);
    ExpectDirection(t, votes);
    Apply(votes, data_["eta"].As<float>()[t], data_["eta_lambda"].As<float>()[t], parameters_);
    ASSERT_EQ(testing::Bits(Flat(parameters_)), testing::Bits(Row<float>("parameter", t, n())));
  }
}

// Each element alone: the direction comes from one vote at the constant frequency.
TEST_P(GoldenDistroTest, SingleUpdatesHaveTheirBits) {
  const auto p = data_["update_p"].As<float>(), want = data_["update_result"].As<float>();
  const auto eta = data_["update_eta"].As<float>(),
             eta_lambda = data_["update_eta_lambda"].As<float>();
  const auto direction = data_["update_direction"].As<int8_t>();
  const MatrixShape one = {.rows = 1, .cols = 1, .elements = 1};
  for (size_t i = 0; i < p.size(); ++i) {
    const std::vector<uint32_t> offsets = {0, direction[i] == 0 ? 0u : 1u};
    const std::vector<uint16_t> positions(offsets[1], 0);
    const std::vector<int16_t> values(offsets[1], direction[i]);
    float got = p[i];
    ASSERT_TRUE(backend_
                    ->ApplyVotes(one, {.first = 0, .count = 1},
                                 {.eta = eta[i], .eta_lambda = eta_lambda[i]},
                                 {offsets, positions, values}, absl::MakeSpan(&got, 1))
                    .ok());
    ASSERT_TRUE(testing::SameBits(got, want[i])) << i << ": " << got << " for " << want[i];
  }
}

TEST_P(GoldenDistroTest, CoefficientsOfOneStep) {
  const int64_t step = run_.json["coefficient_of"][0], worker = run_.json["coefficient_of"][1];
  for (int64_t t = 0; t < step; ++t) {
    std::vector<int> unused(blocks_ * kBlockElements);
    Compress(t, worker);
    Send(t, worker, unused);
  }
  k_ = kBlockElements;
  positions_.resize(blocks_ * k_);
  values_.resize(blocks_ * k_);
  const TensorBuffer gradient = Gradient(step, worker);
  const double scale = std::min(1.0, run_.json["clip"].get<double>() / GradientNorm(gradient));
  for (const BlockRun& part : layout().Runs(0, blocks_)) {
    backend_->CompressSigns(layout().tensors()[part.tensor].matrix, {part.first_block, part.blocks},
                            {.beta = run_.json["beta"].get<float>(),
                             .eta = data_["eta"].As<float>()[step],
                             .gradient_scale = static_cast<float>(scale),
                             .k = k_},
                            gradient.tensor(part.tensor), momentum_[worker].tensor(part.tensor),
                            absl::MakeSpan(positions_).subspan(part.offset * k_, part.blocks * k_),
                            absl::MakeSpan(values_).subspan(part.offset * k_, part.blocks * k_));
  }
  ExpectClose(values_, data_["coefficient"].As<float>(), "coefficient");
}

}  // namespace
}  // namespace distro
