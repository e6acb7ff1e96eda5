// golden/llama: a tiny LlamaForCausalLM computed by transformers. Tolerances are those of the
// golden data: about five times what f32 differs from f64 there.
#include <cmath>
#include <filesystem>
#include <map>
#include <string>

#include "common/base/file.h"
#include "common/model/checkpoint/hf_folder.h"
#include "common/model/checkpoint/safetensors.h"
#include "gtest/gtest.h"
#include "tests/testing/golden.h"
#include "worker/model/model.h"

namespace distro::worker {
namespace {

using ::distro::testing::GoldenArray;
using ::distro::testing::GoldenDir;
using ::distro::testing::LoadGolden;

// A checkpoint of the folder, opened and ready to compute.
struct Opened {
  std::unique_ptr<Layout> layout;
  std::unique_ptr<TensorBuffer> parameters;
  std::unique_ptr<Model> model;
};

Opened Open(const std::string& variant, const std::string& config_json) {
  SetTorchThreads(1);
  const CheckpointFolder folder = OpenCheckpointFolder(GoldenDir() + "/llama/" + variant).value();
  Opened opened;
  opened.layout =
      std::make_unique<Layout>(Layout::Create(folder.manifest(), kDefaultSegmentBlocks).value());
  opened.parameters = std::make_unique<TensorBuffer>(*opened.layout);
  EXPECT_TRUE(folder.ReadInto(*opened.layout, opened.parameters.get()).ok());
  const std::string json = config_json.empty() ? folder.config_json() : config_json;
  opened.model = Model::Create(ParseModelConfig(json).value(), *opened.layout).value();
  return opened;
}

Opened Open(const std::string& variant) { return Open(variant, ""); }

class GoldenLlamaTest : public ::testing::Test {
 protected:
  GoldenLlamaTest() : golden_(LoadGolden("llama")) {}

  absl::Span<const float> Floats(const std::string& name) { return golden_.at(name).As<float>(); }
  TokenBatch Tokens() {
    const GoldenArray& ids = golden_.at("input_ids");
    return {.tokens = ids.As<int32_t>(), .sequences = static_cast<int>(ids.shape[0])};
  }

  // All sequences, then the first alone.
  void ExpectLogits(const Opened& opened, const TokenBatch& batch,
                    absl::Span<const float> expected) {
    const auto logits = opened.model->Logits(batch, *opened.parameters);
    ASSERT_TRUE(logits.ok()) << logits.status();
    ASSERT_EQ(logits->size(), expected.size());
    double worst = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      worst = std::max(worst, std::abs(double{(*logits)[i]} - expected[i]));
    }
    EXPECT_LE(worst, 2e-5);
    RecordProperty("largest_difference", std::to_string(worst));
  }

  std::map<std::string, GoldenArray> golden_;
};

// One file, and in shards where the folder has them.
TEST_F(GoldenLlamaTest, Logits) {
  ExpectLogits(Open("model"), Tokens(), Floats("logits"));
  if (std::filesystem::exists(GoldenDir() + "/llama/model_sharded")) {
    ExpectLogits(Open("model_sharded"), Tokens(), Floats("logits"));
  }
}

TEST_F(GoldenLlamaTest, LogitsWithTheConfigInOlderKeys) {
  const std::string json = ReadFile(GoldenDir() + "/llama/model/config.v4.json").value();
  ExpectLogits(Open("model", json), Tokens(), Floats("logits"));
}

TEST_F(GoldenLlamaTest, LogitsWithTheScaledRopeOfLlama3) {
  if (!golden_.contains("llama3_logits")) GTEST_SKIP() << "this golden data has none";
  const std::string json = ReadFile(GoldenDir() + "/llama/model/config.llama3.json").value();
  ExpectLogits(Open("model", json), Tokens(), Floats("llama3_logits"));
}

TEST_F(GoldenLlamaTest, LogitsAndLossOfBf16Weights) {
  const Opened opened = Open("model_bf16");
  TokenBatch first = Tokens();
  first.tokens = first.tokens.first(first.tokens.size() / first.sequences);
  first.sequences = 1;
  ExpectLogits(opened, first, Floats("bf16_logits"));
  EXPECT_NEAR(opened.model->Loss(Tokens(), *opened.parameters).value(), Floats("bf16_loss")[0],
              1e-5);
}

TEST_F(GoldenLlamaTest, MatchesGradients) {
  const Opened opened = Open("model");
  TensorBuffer gradient(*opened.layout);
  const auto loss =
      opened.model->LossAndGradient(Tokens(), *opened.parameters, Accumulation::kStore, &gradient);
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_NEAR(*loss, Floats("loss")[0], 1e-5);
  const auto file = SafetensorsFile::Open(GoldenDir() + "/llama/gradients.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->tensors().size(), static_cast<size_t>(gradient.tensors()));
  for (int i = 0; i < gradient.tensors(); ++i) {
    const std::string& name = opened.layout->manifest().tensors()[i].name;
    std::vector<float> expected(gradient.tensor(i).size());
    ASSERT_NE(file->Find(name), nullptr) << name;
    ASSERT_TRUE(CopyToFloat(*file->Find(name), absl::MakeSpan(expected)).ok());
    double largest = 0, worst = 0;
    for (size_t j = 0; j < expected.size(); ++j) {
      largest = std::max(largest, std::abs(double{expected[j]}));
      worst = std::max(worst, std::abs(double{expected[j]} - gradient.tensor(i)[j]));
    }
    EXPECT_LE(worst, 1e-5 * largest) << name;
  }
}

TEST_F(GoldenLlamaTest, LossAfterOneTwoAndThreeStepsOfGradientDescent) {
  const Opened opened = Open("model");
  TensorBuffer gradient(*opened.layout);
  for (int step = 0; step < 4; ++step) {
    const auto loss = opened.model->LossAndGradient(Tokens(), *opened.parameters,
                                                    Accumulation::kStore, &gradient);
    ASSERT_TRUE(loss.ok()) << loss.status();
    EXPECT_NEAR(*loss, Floats("loss")[step], 1e-5) << "step " << step;
    EXPECT_NEAR(opened.model->Loss(Tokens(), *opened.parameters).value(), *loss, 1e-6);
    for (int i = 0; i < gradient.tensors(); ++i) {
      for (size_t j = 0; j < gradient.tensor(i).size(); ++j) {
        opened.parameters->tensor(i)[j] -= 0.1f * gradient.tensor(i)[j];
      }
    }
  }
}

}  // namespace
}  // namespace distro::worker
