#include "worker/model/model.h"

#include <algorithm>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/model/tiny_model.h"
#include "worker/model/units.h"

namespace distro::worker {
namespace {

using ::distro::worker::testing::RandomTokens;
using ::distro::worker::testing::TinyConfig;
using ::distro::worker::testing::TinyModel;
using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Status CreateStatus(const DecoderConfig& config, std::vector<TensorSpec> tensors) {
  const Layout layout = Layout::Create(Manifest::Create(std::move(tensors)).value(), 4).value();
  return Model::Create(testing::MakeLlama(config), layout).status();
}

void ExpectInvalid(const absl::Status& status, const std::string& what) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(status.message(), HasSubstr(what));
}

// One table reads configurations, the other computes: a model that only one of them knows would be
// refused by some workers and tools of a run, or not be reached at all.
TEST(ArchitecturesTest, AreEqualInBothTables) {
  EXPECT_THAT(TypesWithUnits(), ::testing::UnorderedElementsAreArray(ModelTypes()));
}

TEST(ModelCreateTest, NamesAMissingTensor) {
  std::vector<TensorSpec> tensors = Decoder(TinyConfig()).Tensors();
  std::erase_if(tensors, [](const TensorSpec& t) { return t.name == "model.norm.weight"; });
  ExpectInvalid(CreateStatus(TinyConfig(), tensors), "model.norm.weight");
}

TEST(ModelCreateTest, NamesAnUnknownTensor) {
  std::vector<TensorSpec> tensors = Decoder(TinyConfig()).Tensors();
  tensors.push_back({"model.layers.0.self_attn.q_proj.bias", {32}});
  ExpectInvalid(CreateStatus(TinyConfig(), tensors), "model.layers.0.self_attn.q_proj.bias");
}

TEST(ModelCreateTest, NamesATensorOfAnotherShape) {
  std::vector<TensorSpec> tensors = Decoder(TinyConfig()).Tensors();
  for (TensorSpec& tensor : tensors) {
    if (tensor.name == "model.layers.1.mlp.up_proj.weight")
      std::swap(tensor.shape[0], tensor.shape[1]);
  }
  ExpectInvalid(CreateStatus(TinyConfig(), tensors), "model.layers.1.mlp.up_proj.weight");
}

TEST(ModelCreateTest, RefusesAHeadTensorWhenTheEmbeddingsAreTied) {
  ExpectInvalid(CreateStatus(TinyConfig(4, 2, /*tied=*/true), Decoder(TinyConfig()).Tensors()),
                "lm_head.weight");
}

TEST(ModelBatchTest, RefusesTokensThatAreNotWholeSequences) {
  TinyModel tiny(TinyConfig());
  const std::vector<int32_t> tokens(7, 1);
  ExpectInvalid(tiny.model->Loss({.tokens = tokens, .sequences = 2}, tiny.parameters).status(),
                "7 tokens are not 2 sequences");
  ExpectInvalid(tiny.model->Loss({.tokens = tokens, .sequences = 0}, tiny.parameters).status(),
                "7 tokens are not 0 sequences");
}

TEST(ModelBatchTest, RefusesSequencesTooShortOrTooLong) {
  TinyModel tiny(TinyConfig());
  const std::vector<int32_t> tokens(18, 1);
  const auto loss = [&](int length) {
    return tiny.model->Loss({.tokens = absl::MakeConstSpan(tokens).first(length)}, tiny.parameters);
  };
  ExpectInvalid(loss(0).status(), "positions");
  ExpectInvalid(loss(1).status(), "0 positions");
  EXPECT_TRUE(loss(17).ok());
  ExpectInvalid(loss(18).status(), "17 positions; the model takes 1 to 16");
}

TEST(ModelBatchTest, NamesATokenOutsideTheVocabulary) {
  TinyModel tiny(TinyConfig());
  std::vector<int32_t> tokens(6, 39);
  EXPECT_TRUE(tiny.model->Logits({.tokens = tokens}, tiny.parameters).ok());
  tokens[4] = 40;
  ExpectInvalid(tiny.model->Logits({.tokens = tokens}, tiny.parameters).status(),
                "token 4 of the batch is 40");
  tokens[4] = -1;
  TensorBuffer gradient(tiny.layout);
  ExpectInvalid(
      tiny.model
          ->LossAndGradient({.tokens = tokens}, tiny.parameters, Accumulation::kStore, &gradient)
          .status(),
      "token 4 of the batch is -1");
}

TEST(ModelBatchTest, RefusesABufferOfAnotherLayout) {
  TinyModel tiny(TinyConfig());
  TinyModel other(TinyConfig(4, 4));
  const std::vector<int32_t> tokens(6, 1);
  ExpectInvalid(tiny.model->Loss({.tokens = tokens}, other.parameters).status(), "layout");
  ExpectInvalid(tiny.model
                    ->LossAndGradient({.tokens = tokens}, tiny.parameters, Accumulation::kStore,
                                      &other.parameters)
                    .status(),
                "layout");
}

TEST(ModelTest, LeavesTheParametersAsTheyWere) {
  TinyModel tiny(TinyConfig());
  const std::vector<float> before = testing::Flat(tiny.parameters);
  const std::vector<int32_t> tokens = RandomTokens(12, 40, 3);
  TensorBuffer gradient(tiny.layout);
  ASSERT_TRUE(
      tiny.model
          ->LossAndGradient({.tokens = tokens}, tiny.parameters, Accumulation::kStore, &gradient)
          .ok());
  EXPECT_EQ(testing::Flat(tiny.parameters), before);
}

TEST(ModelTest, IsCausal) {
  TinyModel tiny(TinyConfig());
  std::vector<int32_t> tokens = RandomTokens(10, 40, 4);
  const auto before = tiny.model->Logits({.tokens = tokens}, tiny.parameters).value();
  tokens[7] = (tokens[7] + 1) % 40;
  const auto after = tiny.model->Logits({.tokens = tokens}, tiny.parameters).value();
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 7 * 40, after.begin()));
  EXPECT_FALSE(std::equal(before.begin() + 7 * 40, before.end(), after.begin() + 7 * 40));
}

// Copies the rows of a KV projection so that every query head gets a KV head of its own.
void RepeatHeads(absl::Span<const float> grouped, int head_elements, int copies,
                 absl::Span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t head = i / static_cast<size_t>(head_elements) / static_cast<size_t>(copies);
    out[i] =
        grouped[head * static_cast<size_t>(head_elements) + i % static_cast<size_t>(head_elements)];
  }
}

// With each KV head written out for its group the arithmetic is plain multi-head attention: the
// same products in possibly another order, so 1e-5 on logits of magnitude 3.
TEST(ModelTest, GroupedQueryAttentionIsAttentionWithRepeatedHeads) {
  for (const int kv_heads : {1, 2}) {
    TinyModel grouped(TinyConfig(4, kv_heads));
    TinyModel plain(TinyConfig(4, 4));
    for (int i = 0; i < plain.parameters.tensors(); ++i) {
      if (plain.parameters.tensor(i).size() == grouped.parameters.tensor(i).size()) continue;
      RepeatHeads(grouped.parameters.tensor(i), 8 * 32, 4 / kv_heads, plain.parameters.tensor(i));
    }
    const std::vector<int32_t> tokens = RandomTokens(12, 40, 5);
    const auto expected = plain.model->Logits({.tokens = tokens}, plain.parameters).value();
    const auto actual = grouped.model->Logits({.tokens = tokens}, grouped.parameters).value();
    EXPECT_THAT(actual, ::testing::Pointwise(::testing::FloatNear(1e-5f), expected));
  }
}

// With all weights of the head zero every token is equally likely.
TEST(ModelTest, LossOfUniformLogitsIsTheLogarithmOfTheVocabulary) {
  TinyModel tiny(TinyConfig());
  for (int i = 0; i < tiny.parameters.tensors(); ++i) {
    if (tiny.layout.manifest().tensors()[i].name != "lm_head.weight") continue;
    std::fill(tiny.parameters.tensor(i).begin(), tiny.parameters.tensor(i).end(), 0.0f);
  }
  const std::vector<int32_t> tokens = RandomTokens(12, 40, 6);
  EXPECT_NEAR(tiny.model->Loss({.tokens = tokens}, tiny.parameters).value(), std::log(40.0), 1e-6);
}

}  // namespace
}  // namespace distro::worker
