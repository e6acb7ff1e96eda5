#include "common/run/round/model_check.h"

#include <string>

#include "common/model/architecture.h"
#include "common/run/run_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using ::testing::HasSubstr;

constexpr absl::string_view kLlama =
    R"({"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 16, "vocab_size": 32, "max_position_embeddings": 64})";

class ModelCheckTest : public ::testing::Test {
 protected:
  static v1::RunConfig Config(uint32_t sequence_length) {
    v1::RunConfig config;
    config.set_name("test");
    config.set_rounds(10);
    config.set_sequence_length(sequence_length);
    config.set_samples_per_worker(1);
    return *CompleteRunConfig(config);
  }
  static void ExpectRefused(const absl::Status& status, const std::string& text) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }

  const Layout layout_ =
      *Layout::Create(*Manifest::Create((*ParseModelConfig(kLlama))->Tensors()), 16);
};

TEST_F(ModelCheckTest, TakesAModelThatWorkersTrainUpToItsPositions) {
  EXPECT_EQ(CheckModelOfRun(Config(64), layout_, kLlama), absl::OkStatus());
  ExpectRefused(CheckModelOfRun(Config(65), layout_, kLlama),
                "sequence_length: 65 exceeds the model's max_position_embeddings, 64");
}

TEST_F(ModelCheckTest, RefusesAnArchitectureThatNoWorkerHasAndSaysWhoseRunItCanBe) {
  const absl::Status status = CheckModelOfRun(Config(8), layout_, R"({"model_type": "gpt2"})");
  ExpectRefused(status, "model_type: \"gpt2\"");
  ExpectRefused(status, "\"workers\": \"python\"");
}

TEST_F(ModelCheckTest, RefusesAModelOfOtherTensors) {
  const Layout other = *Layout::Create(*Manifest::Create({{.name = "a", .shape = {3}}}), 16);
  ExpectRefused(CheckModelOfRun(Config(8), other, kLlama), "other tensors");
}

TEST_F(ModelCheckTest, PythonWorkersBringTheModel) {
  v1::RunConfig config = Config(1000);
  config.set_workers(v1::WORKERS_PYTHON);
  EXPECT_EQ(CheckModelOfRun(config, layout_, R"({"model_type": "gpt2"})"), absl::OkStatus());
}

}  // namespace
}  // namespace distro
