#include "common/model/init_weights.h"

#include <cmath>

#include "common/base/checksum.h"
#include "common/model/decoder/decoder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

DecoderConfig Config() {
  return {.hidden_size = 64,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 16,
          .intermediate_size = 160,
          .vocab_size = 4096,
          .max_positions = 128,
          .rms_norm_eps = 1e-5f,
          .rope = {.theta = 10000},
          .tied_embeddings = false,
          .initializer_range = 0.02f};
}

Layout LayoutOf(const DecoderConfig& config) {
  return *Layout::Create(*Manifest::Create(Decoder(config).Tensors()), kDefaultSegmentBlocks);
}

std::string HashOf(const TensorBuffer& buffer, int tensor) {
  const absl::Span<const float> values = buffer.tensor(tensor);
  return ToHex(Xxh3({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}));
}

class InitWeightsTest : public ::testing::Test {
 protected:
  InitWeightsTest() : layout_(LayoutOf(Config())), weights_(layout_) {
    const absl::Status status = InitWeights(Decoder(Config()), layout_, 7, &weights_);
    EXPECT_TRUE(status.ok()) << status;
  }
  absl::Span<const float> Head() const {
    return static_cast<const TensorBuffer&>(weights_).tensor(0);
  }

  Layout layout_;
  TensorBuffer weights_;
};

TEST_F(InitWeightsTest, NormsAreOne) {
  for (int i = 0; i < weights_.tensors(); ++i) {
    if (layout_.tensors()[i].decays) continue;
    EXPECT_THAT(weights_.tensor(i), ::testing::Each(1.0f));
  }
}

// 262 144 elements: the limits are five standard errors of a normal sample.
TEST_F(InitWeightsTest, MatricesHaveTheMomentsOfANormalDistribution) {
  const double n = static_cast<double>(Head().size());
  double sum[5] = {};
  for (float value : Head()) {
    const double z = value / 0.02;
    EXPECT_LE(std::abs(z), 6.001);
    for (int power = 1; power <= 4; ++power) sum[power] += std::pow(z, power) / n;
  }
  EXPECT_NEAR(sum[1], 0, 5 / std::sqrt(n));
  EXPECT_NEAR(sum[2], 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(sum[3], 0, 5 * std::sqrt(15 / n));
  EXPECT_NEAR(sum[4], 2.9, 5 * std::sqrt(96 / n));
}

TEST_F(InitWeightsTest, TensorsAndNeighboursAreUncorrelated) {
  const absl::Span<const float> head = Head(), embedding = weights_.tensor(1);
  double across = 0, neighbours = 0;
  for (size_t i = 0; i + 1 < head.size(); ++i) {
    across += head[i] / 0.02 * embedding[i] / 0.02;
    neighbours += head[i] / 0.02 * head[i + 1] / 0.02;
  }
  EXPECT_NEAR(across / head.size(), 0, 5 / std::sqrt(head.size()));
  EXPECT_NEAR(neighbours / head.size(), 0, 5 / std::sqrt(head.size()));
}

// The bits that every machine must produce.
TEST_F(InitWeightsTest, BitsAreFixed) {
  EXPECT_EQ(HashOf(weights_, 0), "e606b7bcc21e3f21");
  EXPECT_EQ(HashOf(weights_, 3), "c709c5b0e380dc9f");
}

TEST_F(InitWeightsTest, SeedsGiveOtherWeights) {
  TensorBuffer other(layout_);
  ASSERT_TRUE(InitWeights(Decoder(Config()), layout_, 8, &other).ok());
  EXPECT_NE(HashOf(other, 0), HashOf(weights_, 0));
}

TEST_F(InitWeightsTest, RefusesALayoutOfAnotherModel) {
  DecoderConfig tied = Config();
  tied.tied_embeddings = true;
  const absl::Status status = InitWeights(Decoder(tied), layout_, 7, &weights_);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("lm_head.weight"));
}

}  // namespace
}  // namespace distro
