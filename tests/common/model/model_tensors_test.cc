#include "common/model/model_tensors.h"

#include <functional>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Tensors = std::vector<TensorSpec>;

std::string ConfigOf(int layers, bool tied) {
  return absl::StrCat(
      R"({"model_type": "llama", "hidden_size": 8, "num_attention_heads": 2,
          "intermediate_size": 16, "vocab_size": 32, "max_position_embeddings": 64,
          "num_hidden_layers": )",
      layers, R"(, "tie_word_embeddings": )", tied ? "true" : "false", "}");
}

class ModelTensorsTest : public ::testing::Test {
 protected:
  // The refusal of weights that `change` made of the model's.
  std::string Refusal(const std::function<void(Tensors&)>& change, bool tied = false) {
    const auto model = *ParseModelConfig(ConfigOf(2, tied));
    Tensors tensors = model->Tensors();
    change(tensors);
    const absl::Status status = CheckModelTensors(*model, *Manifest::Create(tensors));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }
  static void Rename(Tensors& tensors, const std::function<std::string(std::string)>& name) {
    for (TensorSpec& tensor : tensors) tensor.name = name(tensor.name);
  }
  static TensorSpec& Find(Tensors& tensors, const std::string& name) {
    for (TensorSpec& tensor : tensors)
      if (tensor.name == name) return tensor;
    ADD_FAILURE() << name;
    return tensors[0];
  }
};

TEST_F(ModelTensorsTest, TakesTheModelsTensors) {
  const auto model = *ParseModelConfig(ConfigOf(2, false));
  EXPECT_EQ(CheckModelTensors(*model, *Manifest::Create(model->Tensors())), absl::OkStatus());
}

TEST_F(ModelTensorsTest, SaysOfWhichWrapperTheNamesAre) {
  const auto with = [](const std::string& prefix) {
    return [prefix](Tensors& t) { Rename(t, [&](std::string name) { return prefix + name; }); };
  };
  EXPECT_THAT(Refusal(with("module.")),
              AllOf(HasSubstr("tensor lm_head.weight is missing (shape [32, 8], and 20 more)"),
                    HasSubstr("tensor module.lm_head.weight is not part of the model"),
                    HasSubstr("model.module")));
  EXPECT_THAT(Refusal(with("_orig_mod.")), HasSubstr("torch.compile"));
  EXPECT_THAT(Refusal(with("other.")), HasSubstr("begin with \"other.\""));
  EXPECT_THAT(Refusal([](Tensors& t) {
                Rename(t, [](std::string name) {
                  return name.starts_with("model.") ? name.substr(6) : name;
                });
              }),
              HasSubstr("lack \"model.\""));
  EXPECT_THAT(Refusal([](Tensors& t) {
                t.push_back({"model.layers.0.self_attn.q_proj.lora_A.weight", {2, 8}});
              }),
              HasSubstr("merge_and_unload()"));
}

TEST_F(ModelTensorsTest, NamesTheKeyOfConfigJsonThatDiffers) {
  EXPECT_THAT(Refusal([](Tensors& t) {
                std::erase_if(t, [](const TensorSpec& tensor) {
                  return tensor.name.starts_with("model.layers.1.");
                });
              }),
              HasSubstr("num_hidden_layers is 2, and the weights have 1 layers: set it to 1"));
  EXPECT_THAT(Refusal([](Tensors& t) {
                Find(t, "model.embed_tokens.weight").shape[0] = 34;
                Find(t, "lm_head.weight").shape[0] = 34;
              }),
              AllOf(HasSubstr("tensor lm_head.weight has shape [34, 8], expected [32, 8], and 1"),
                    HasSubstr("vocab_size is 32, and the weights have 34 rows: set it to 34")));
  EXPECT_THAT(Refusal([](Tensors& t) {
                std::erase_if(
                    t, [](const TensorSpec& tensor) { return tensor.name == "lm_head.weight"; });
              }),
              HasSubstr("set tie_word_embeddings to true"));
  EXPECT_THAT(Refusal(
                  [](Tensors& t) {
                    t.push_back({"lm_head.weight", {32, 8}});
                  },
                  true),
              HasSubstr("the stored head is not equal to the embedding"));
}

TEST_F(ModelTensorsTest, NamesWhatTheModelDoesNotHave) {
  EXPECT_THAT(Refusal([](Tensors& t) {
                t.push_back({"model.layers.0.self_attn.q_proj.bias", {8}});
              }),
              AllOf(HasSubstr("q_proj.bias"), HasSubstr("no biases")));
  EXPECT_THAT(Refusal([](Tensors& t) {
                Find(t, "model.layers.0.mlp.up_proj.weight").shape = {8, 16};
              }),
              AllOf(HasSubstr("up_proj.weight has shape [8, 16], expected [16, 8]"),
                    HasSubstr("exchanged")));
  EXPECT_THAT(Refusal([](Tensors& t) {
                Find(t, "model.layers.0.mlp.up_proj.weight").shape = {20, 8};
              }),
              HasSubstr("of two models"));
}

}  // namespace
}  // namespace distro
