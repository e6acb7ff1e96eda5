// Loss and gradients of a head do not depend on how many tokens have logits at a time.
#include "worker/model/token_loss.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::worker {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::SizeIs;

constexpr int64_t kTokens = 10, kHidden = 6, kVocabulary = 17;

struct Result {
  at::Tensor loss, of_hidden, of_weight;
};

class TokenLossTest : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  static at::Tensor Values(int64_t rows, double phase) {
    const at::Tensor x = at::arange(rows * kHidden, at::kDouble);
    return ((x + phase) * 1.7).sin().view({rows, kHidden}).to(GetParam());
  }

  // `upstream`: the gradient of the loss.
  Result Run(const LogitChunks& chunks, double upstream = 1) const {
    const at::Tensor hidden = hidden_.detach().requires_grad_();
    const at::Tensor weight = weight_.detach().requires_grad_();
    Result result{
        .loss = TokenLoss(hidden, weight, labels_, chunks), .of_hidden = {}, .of_weight = {}};
    const auto gradients = torch::autograd::grad({result.loss}, {hidden, weight},
                                                 {at::full({}, upstream, at::kFloat)});
    result.of_hidden = gradients[0];
    result.of_weight = gradients[1];
    return result;
  }
  void ExpectNear(const at::Tensor& a, const at::Tensor& b) const {
    EXPECT_EQ(a.scalar_type(), b.scalar_type());
    const double scale = b.abs().max().item<double>();
    const double unit = GetParam() == at::kFloat ? 0x1p-23 : 0x1p-7;
    EXPECT_LE((a - b).abs().max().item<double>(), 8 * unit * scale);
  }

  const at::Tensor hidden_ = Values(kTokens, 0.25);
  const at::Tensor weight_ = Values(kVocabulary, 2.5);
  const at::Tensor labels_ = at::arange(kTokens, at::kLong) * 5 % kVocabulary;
};
INSTANTIATE_TEST_SUITE_P(Types, TokenLossTest, ::testing::Values(at::kFloat, at::kBFloat16));

TEST_P(TokenLossTest, ChunksGiveTheLossAndTheGradientsOfAll) {
  const Result all = Run({.rows = kTokens});
  for (const int64_t alignment : {1, 64}) {
    for (const int64_t rows : {1, 3, 5, 9, 20}) {
      SCOPED_TRACE(absl::StrCat(rows, " rows aligned to ", alignment));
      const Result chunks = Run({.rows = rows, .alignment = alignment});
      ExpectNear(chunks.loss, all.loss);
      ExpectNear(chunks.of_hidden, all.of_hidden);
      ExpectNear(chunks.of_weight, all.of_weight);
    }
  }
}

TEST_P(TokenLossTest, AsManyRowsAsTokensAreTorchsCrossEntropy) {
  const at::Tensor loss =
      at::cross_entropy_loss(at::linear(hidden_, weight_).to(at::kFloat), labels_);
  EXPECT_TRUE(Run({.rows = kTokens}).loss.equal(loss));
  EXPECT_TRUE(Run({.rows = kTokens, .alignment = kVocabulary}).loss.equal(loss));
}

TEST_P(TokenLossTest, GradientsScaleWithThatOfTheLoss) {
  const Result all = Run({.rows = kTokens}, 0.5), chunks = Run({.rows = 4}, 0.5);
  ExpectNear(chunks.of_hidden, all.of_hidden);
  ExpectNear(chunks.of_weight, all.of_weight);
}

TEST_P(TokenLossTest, WithoutAGraphTheLossIsTheSame) {
  const at::NoGradGuard no_grad;
  const at::Tensor all = TokenLoss(hidden_, weight_, labels_, {.rows = kTokens});
  ExpectNear(TokenLoss(hidden_, weight_, labels_, {.rows = 4}), all);
  ExpectNear(TokenLoss(hidden_, weight_, labels_, {.rows = 4, .alignment = 64}), all);
}

// Observes the sides of products.
class ObservedProducts {
 public:
  ObservedProducts() {
    observer_ = this;
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&Observe).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  }
  ~ObservedProducts() { at::removeCallback(handle_); }
  ObservedProducts(const ObservedProducts&) = delete;
  ObservedProducts& operator=(const ObservedProducts&) = delete;

  // The largest side of the factors of each.
  const std::vector<int64_t>& sides() const { return sides_; }

 private:
  static std::unique_ptr<at::ObserverContext> Observe(const at::RecordFunction& function) {
    if (absl::string_view(function.name()) != "aten::mm") return nullptr;
    int64_t side = 0;
    for (const c10::IValue& input : function.inputs())
      for (const int64_t size : input.toTensor().sizes()) side = std::max(side, size);
    observer_->sides_.push_back(side);
    return nullptr;
  }

  static inline thread_local ObservedProducts* observer_ = nullptr;  // Torch takes bare functions
  at::CallbackHandle handle_ = 0;
  std::vector<int64_t> sides_;
};

TEST_P(TokenLossTest, ProductsHaveAnAlignedNumberOfWords) {
  const ObservedProducts observed;
  Run({.rows = 5, .alignment = 64});
  EXPECT_THAT(observed.sides(), AllOf(SizeIs(2 * 3), Each(64))) << "two chunks, three products";
}

}  // namespace
}  // namespace distro::worker
