// golden/llama: a tiny LlamaForCausalLM computed by transformers. Tolerances are those of the
// golden data: about five times what f32 differs from f64 there.
#include <filesystem>
#include <map>
#include <string>

#include "common/base/file.h"
#include "gtest/gtest.h"
#include "tests/testing/golden.h"
#include "tests/worker/model/golden_checkpoint.h"

namespace distro::worker {
namespace {

using ::distro::testing::GoldenArray;
using ::distro::testing::GoldenDir;
using ::distro::testing::LoadGolden;
using ::distro::worker::testing::ExpectGradients;
using ::distro::worker::testing::ExpectLogits;
using ::distro::worker::testing::GoldenCheckpoint;

GoldenCheckpoint Open(const std::string& variant, const std::string& config_json = "") {
  return GoldenCheckpoint("llama/" + variant, config_json);
}

class GoldenLlamaTest : public ::testing::Test {
 protected:
  GoldenLlamaTest() : golden_(LoadGolden("llama")) {}

  absl::Span<const float> Floats(const std::string& name) { return golden_.at(name).As<float>(); }
  TokenBatch Tokens() {
    const GoldenArray& ids = golden_.at("input_ids");
    return {.tokens = ids.As<int32_t>(), .sequences = static_cast<int>(ids.shape[0])};
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
  const GoldenCheckpoint opened = Open("model_bf16");
  TokenBatch first = Tokens();
  first.tokens = first.tokens.first(first.tokens.size() / first.sequences);
  first.sequences = 1;
  ExpectLogits(opened, first, Floats("bf16_logits"));
  EXPECT_NEAR(opened.model->Loss(Tokens(), *opened.parameters).value(), Floats("bf16_loss")[0],
              1e-5);
}

TEST_F(GoldenLlamaTest, MatchesGradients) {
  ExpectGradients(Open("model"), Tokens(), Floats("loss")[0], "llama/gradients.safetensors");
}

TEST_F(GoldenLlamaTest, LossAfterOneTwoAndThreeStepsOfGradientDescent) {
  const GoldenCheckpoint opened = Open("model");
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
