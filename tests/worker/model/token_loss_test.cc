// Loss and gradients of a head do not depend on how many tokens have logits at a time.
#include "worker/model/token_loss.h"

#include "gtest/gtest.h"

namespace distro::worker {
namespace {

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
  Result Run(int64_t rows, double upstream = 1) const {
    const at::Tensor hidden = hidden_.detach().requires_grad_();
    const at::Tensor weight = weight_.detach().requires_grad_();
    Result result{
        .loss = TokenLoss(hidden, weight, labels_, rows), .of_hidden = {}, .of_weight = {}};
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
  const Result all = Run(kTokens);
  for (const int64_t rows : {1, 3, 5, 9}) {
    SCOPED_TRACE(rows);
    const Result chunks = Run(rows);
    ExpectNear(chunks.loss, all.loss);
    ExpectNear(chunks.of_hidden, all.of_hidden);
    ExpectNear(chunks.of_weight, all.of_weight);
  }
}

TEST_P(TokenLossTest, AsManyRowsAsTokensAreTorchsCrossEntropy) {
  const at::Tensor loss =
      at::cross_entropy_loss(at::linear(hidden_, weight_).to(at::kFloat), labels_);
  EXPECT_TRUE(Run(kTokens).loss.equal(loss));
}

TEST_P(TokenLossTest, GradientsScaleWithThatOfTheLoss) {
  const Result all = Run(kTokens, 0.5), chunks = Run(4, 0.5);
  ExpectNear(chunks.of_hidden, all.of_hidden);
  ExpectNear(chunks.of_weight, all.of_weight);
}

TEST_P(TokenLossTest, WithoutAGraphTheLossIsTheSame) {
  const at::NoGradGuard no_grad;
  ExpectNear(TokenLoss(hidden_, weight_, labels_, 4),
             TokenLoss(hidden_, weight_, labels_, kTokens));
}

}  // namespace
}  // namespace distro::worker
