// Compares momentum, transform, selection and error feedback with the published DeMo reference,
// step by step. The folder lists the sets; a set with several workers runs once per worker.
//
// Ours differs from DeMo in the rest: it votes by signs. DeMo's direction is the sign of a float
// transform of values; the parameters are compared by taking that direction as given.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/kernels/backends.h"
#include "tests/testing/golden.h"

namespace distro {
namespace {

using testing::GoldenArray;

constexpr float kBeta = 0.999f;
constexpr float kEta = 1e-3f;
constexpr float kGradientScale = 0x1p-15f;
constexpr double kTolerance =
    2e-6;  // of the largest magnitude of the array, as the data's description states

class GoldenDemoTest : public testing::BackendTest {
 protected:
  std::map<std::string, GoldenArray> data_ = testing::LoadGolden("demo");

  std::set<std::string> Sets() const {
    std::set<std::string> sets;
    for (const auto& [name, array] : data_) {
      if (name.find('/') != std::string::npos) sets.insert(name.substr(0, name.find('/')));
    }
    return sets;
  }
};
INSTANTIATE_TEST_SUITE_P(All, GoldenDemoTest, ::testing::ValuesIn(testing::AllBackends()),
                         testing::BackendName);

void ExpectClose(absl::Span<const float> got, absl::Span<const float> want,
                 const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  double largest = 0, difference = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    largest = std::max(largest, std::abs(double{want[i]}));
    difference = std::max(difference, std::abs(double{got[i]} - want[i]));
  }
  EXPECT_LE(difference, kTolerance * largest) << what;
}

// Which stored step holds step t's dense arrays (all steps, first and last, or the last only), or
// -1.
int64_t StoredAt(int64_t stored, int64_t steps, int64_t t) {
  if (stored == steps) return t;
  if (t == steps - 1) return stored - 1;
  return stored == 2 && t == 0 ? 0 : -1;
}

// One worker of one set.
class Replay {
 public:
  Replay(const std::map<std::string, GoldenArray>& data, testing::WaitingBackend& backend,
         const std::string& set, int64_t worker)
      : data_(data), backend_(backend), set_(set), worker_(worker) {
    const std::vector<int64_t>& index = At("index").shape;  // [T, W, B, K]
    steps_ = index[0], workers_ = index[1], blocks_ = index[2], k_ = index[3];
    tensor_ = blocks_ == 1 ? 'a' : 'b';
    const std::vector<int64_t>& gradient =
        data_.at(absl::StrCat("gradient_", std::string(1, tensor_))).shape;  // [T, W', rows, cols]
    gradient_workers_ = gradient[1];
    matrix_ = {.rows = gradient[2], .cols = gradient[3], .elements = gradient[2] * gradient[3]};
    momentum_.assign(matrix_.elements, 0.0f);
  }

  void Run() {
    for (int64_t t = 0; t < steps_; ++t) Step(t);
  }

 private:
  const GoldenArray& At(const std::string& name) const {
    return data_.at(absl::StrCat(set_, "/", name));
  }
  bool Has(const std::string& name) const { return data_.count(absl::StrCat(set_, "/", name)) > 0; }

  std::vector<float> Gradient(int64_t t) const {
    const auto all = data_.at(absl::StrCat("gradient_", std::string(1, tensor_))).As<int16_t>();
    std::vector<float> gradient;
    for (int16_t q :
         all.subspan((t * gradient_workers_ + worker_) * matrix_.elements, matrix_.elements)) {
      gradient.push_back(static_cast<float>(q));
    }
    return gradient;
  }

  // The part of a stored dense array of `size` elements a worker, at step t; empty when that step
  // is not stored.
  absl::Span<const float> Stored(const std::string& name, int64_t t, int64_t size) const {
    if (!Has(name)) return {};
    const int64_t at = StoredAt(At(name).shape[0], steps_, t);
    return at < 0 ? absl::Span<const float>()
                  : At(name).As<float>().subspan((at * workers_ + worker_) * size, size);
  }

  void Step(int64_t t) {
    SCOPED_TRACE(absl::StrCat("step ", t));
    const BlockRange blocks = {.first = 0, .count = blocks_};
    const SignCompressOptions options = {
        .beta = kBeta, .eta = kEta, .gradient_scale = kGradientScale, .k = static_cast<int>(k_)};
    ExpectAllCoefficients(t, options);
    std::vector<uint16_t> positions(blocks_ * k_);
    std::vector<float> values(blocks_ * k_);
    backend_.CompressSigns(matrix_, blocks, options, Gradient(t), absl::MakeSpan(momentum_),
                           absl::MakeSpan(positions), absl::MakeSpan(values));
    const int64_t entries = blocks_ * k_, at = (t * workers_ + worker_) * entries;
    EXPECT_EQ(absl::MakeConstSpan(positions), At("index").As<uint16_t>().subspan(at, entries));
    ExpectClose(values, At("value").As<float>().subspan(at, entries), "value");
    if (const auto want = Stored("momentum_full", t, matrix_.elements); !want.empty()) {
      ExpectClose(momentum_, want, "momentum_full");
    }
    backend_.FeedbackSigns(matrix_, blocks, static_cast<int>(k_), positions, values,
                           absl::MakeSpan(momentum_));
    if (const auto want = Stored("momentum_left", t, matrix_.elements); !want.empty()) {
      ExpectClose(momentum_, want, "momentum_left");
    }
  }

  void ExpectAllCoefficients(int64_t t, SignCompressOptions options) {
    const auto want = Stored("coefficient", t, blocks_ * kBlockElements);
    if (want.empty()) return;
    options.k = kBlockElements;
    std::vector<float> momentum = momentum_, values(blocks_ * kBlockElements);
    std::vector<uint16_t> positions(blocks_ * kBlockElements);
    backend_.CompressSigns(matrix_, {.first = 0, .count = blocks_}, options, Gradient(t),
                           absl::MakeSpan(momentum), absl::MakeSpan(positions),
                           absl::MakeSpan(values));
    ExpectClose(values, want, "coefficient");
  }

  const std::map<std::string, GoldenArray>& data_;
  testing::WaitingBackend& backend_;
  const std::string set_;
  const int64_t worker_;
  char tensor_ = 'a';
  int64_t steps_ = 0, workers_ = 0, blocks_ = 0, k_ = 0, gradient_workers_ = 0;
  MatrixShape matrix_;
  std::vector<float> momentum_;
};

TEST_P(GoldenDemoTest, MomentumTransformChoiceAndFeedbackAreDemos) {
  ASSERT_FALSE(Sets().empty());
  for (const std::string& set : Sets()) {
    const int64_t workers = data_.at(absl::StrCat(set, "/index")).shape[1];
    for (int64_t w = 0; w < workers; ++w) {
      SCOPED_TRACE(absl::StrCat(set, " worker ", w));
      Replay(data_, *backend_, set, w).Run();
    }
  }
}

// DeMo multiplies once by 1 - lr*wd where ours rounds p - p*(eta*lambda): 1e-7 apart at most, and
// the same bits without decay. Which sets decay is known by name. Ours takes the decay from Apply
// without votes, and DeMo's direction, which is no result of integer votes, as the momentum of
// Lookahead: together the three operations of Apply.
TEST_P(GoldenDemoTest, ParametersFollowFromDemosDirections) {
  for (const std::string& set : Sets()) {
    const GoldenArray& parameter = data_.at(absl::StrCat(set, "/parameter"));
    const GoldenArray& direction = data_.at(absl::StrCat(set, "/direction"));
    const int64_t steps = data_.at(absl::StrCat(set, "/index")).shape[0],
                  stored = parameter.shape[0];
    const MatrixShape matrix = {.rows = parameter.shape[1],
                                .cols = parameter.shape[2],
                                .elements = parameter.shape[1] * parameter.shape[2]};
    const std::vector<uint32_t> no_votes(matrix.Blocks() + 1, 0);
    const bool decays = set != "one_worker_k4";
    const float eta_lambda = decays ? 1e-4f : 0.0f;
    auto before = data_.at(matrix.Blocks() == 1 ? "parameter_a" : "parameter_b").As<float>();
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t at = StoredAt(stored, steps, t);
      if (at < 0) break;  // p before the next stored step is not known
      const auto want = parameter.As<float>().subspan(at * matrix.elements, matrix.elements);
      std::vector<float> d, p(before.begin(), before.end()), got(matrix.elements);
      for (int8_t sign : direction.As<int8_t>().subspan(at * matrix.elements, matrix.elements))
        d.push_back(sign);
      ASSERT_TRUE(backend_
                      ->ApplyVotes(matrix, {.first = 0, .count = matrix.Blocks()},
                                   {.eta = 0, .eta_lambda = eta_lambda}, {no_votes, {}, {}},
                                   absl::MakeSpan(p))
                      .ok());
      backend_->Lookahead(kEta, p, d, absl::MakeSpan(got));
      for (int64_t i = 0; i < matrix.elements; ++i)
        ASSERT_NEAR(got[i], want[i], 1e-7) << set << " step " << t;
      if (!decays) {
        EXPECT_EQ(testing::Bits(got), testing::Bits(want)) << set << " step " << t;
      }
      before = want;
    }
  }
}

}  // namespace
}  // namespace distro
