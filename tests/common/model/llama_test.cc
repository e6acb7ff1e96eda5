#include <map>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "common/base/json.h"
#include "common/model/decoder/decoder.h"
#include "common/model/layout/layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// As transformers 5 writes it.
json NewStyle() {
  return json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": null,
    "dtype": "float32", "head_dim": 16, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
    "intermediate_size": 160, "max_position_embeddings": 128, "mlp_bias": false, "model_type": "llama",
    "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "pretraining_tp": 1,
    "rms_norm_eps": 1e-05, "rope_parameters": {"rope_theta": 50000.0, "rope_type": "default"},
    "tie_word_embeddings": false, "use_cache": true, "vocab_size": 256})");
}

json OldStyle() {
  json config = NewStyle();
  for (const char* key : {"dtype", "rope_parameters"}) config.erase(key);
  config.update({{"torch_dtype", "float32"}, {"rope_theta", 50000}, {"rope_scaling", nullptr}});
  return config;
}

json With(const char* key, json value) {
  json config = NewStyle();
  config[key] = std::move(value);
  return config;
}

DecoderConfig Expected() {
  return {.hidden_size = 64,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 16,
          .intermediate_size = 160,
          .vocab_size = 256,
          .max_positions = 128,
          .rms_norm_eps = 1e-5f,
          .rope = {.theta = 50000},
          .tied_embeddings = false,
          .initializer_range = 0.02f};
}

// By way of the table of architectures.
absl::StatusOr<DecoderConfig> Parse(absl::string_view text) {
  const absl::StatusOr<std::shared_ptr<const Architecture>> model = ParseModelConfig(text);
  if (!model.ok()) return model.status();
  EXPECT_EQ((*model)->model_type(), "llama");
  return dynamic_cast<const Decoder&>(**model).config();
}

void ExpectRefused(const json& config, const std::string& key) {
  const absl::Status status = Parse(config.dump()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << config;
  EXPECT_THAT(std::string(status.message()), HasSubstr(key + ":"));
}

TEST(LlamaTest, ReadsTheKeysOfOldAndNewTransformers) {
  const auto new_style = Parse(NewStyle().dump());
  ASSERT_TRUE(new_style.ok()) << new_style.status();
  EXPECT_EQ(*new_style, Expected());
  const auto old_style = Parse(OldStyle().dump());
  ASSERT_TRUE(old_style.ok()) << old_style.status();
  EXPECT_EQ(*old_style, Expected());
}

TEST(LlamaTest, AbsentKeysHaveTheDefaultsOfTransformers) {
  const auto config = Parse(
      R"({"model_type": "llama", "hidden_size": 96, "num_hidden_layers": 1, "num_attention_heads": 3,
          "intermediate_size": 8, "vocab_size": 7})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->kv_heads, 3);
  EXPECT_EQ(config->head_dim, 32);
  EXPECT_EQ(config->max_positions, 2048);
  EXPECT_EQ(config->rms_norm_eps, 1e-6f);
  EXPECT_EQ(config->rope.theta, 10000);
  EXPECT_EQ(config->initializer_range, 0.02f);
  EXPECT_FALSE(config->tied_embeddings);
}

TEST(LlamaTest, AcceptsWhatChangesNothing) {
  EXPECT_TRUE(Parse(With("rope_scaling", {{"rope_type", "default"}}).dump()).ok());
  EXPECT_TRUE(Parse(With("sliding_window", nullptr).dump()).ok());
  EXPECT_TRUE(Parse(With("rope_theta", 50000).dump()).ok());
  EXPECT_TRUE(Parse(With("dtype", "bfloat16").dump()).ok());
  EXPECT_TRUE(Parse(With("my_note", "x").dump()).ok());
}

json Llama3Scaling() {
  return {{"rope_type", "llama3"},
          {"factor", 32.0},
          {"low_freq_factor", 1.0},
          {"high_freq_factor", 4.0},
          {"original_max_position_embeddings", 64}};
}

TEST(LlamaTest, ReadsTheScaledRopeOfLlama3InOldAndNewKeys) {
  json old_style = OldStyle(), new_style = NewStyle();
  old_style["rope_scaling"] = Llama3Scaling();
  new_style["rope_parameters"].update(Llama3Scaling());
  const Rope expected = {
      .theta = 50000,
      .scaling = RopeScaling{
          .factor = 32, .low_freq_factor = 1, .high_freq_factor = 4, .original_max_positions = 64}};
  json both = new_style;
  both["rope_scaling"] = Llama3Scaling();
  for (const json& config : {old_style, new_style, both}) {
    const auto read = Parse(config.dump());
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->rope, expected) << config;
  }
}

// The keys of published configs, and how many parameters the models have.
TEST(LlamaTest, ReadsPublishedConfigs) {
  const auto parameters = [](absl::string_view text) {
    const auto config = Parse(text);
    EXPECT_TRUE(config.ok()) << config.status();
    int64_t elements = 0;
    for (const TensorSpec& tensor : Decoder(*config).Tensors()) {
      int64_t of_tensor = 1;
      for (const int64_t side : tensor.shape) of_tensor *= side;
      elements += of_tensor;
    }
    return elements;
  };
  // Llama 3.2 1B
  EXPECT_EQ(parameters(R"({
    "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 128000, "eos_token_id": 128001, "head_dim": 64, "hidden_act": "silu",
    "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 8192,
    "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama",
    "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8,
    "pretraining_tp": 1, "rms_norm_eps": 1e-05,
    "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
      "original_max_position_embeddings": 8192, "rope_type": "llama3"},
    "rope_theta": 500000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
    "use_cache": true, "vocab_size": 128256})"),
            1235814400);
  // TinyLlama 1.1B
  EXPECT_EQ(parameters(R"({
    "architectures": ["LlamaForCausalLM"], "bos_token_id": 1, "eos_token_id": 2,
    "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
    "intermediate_size": 5632, "max_position_embeddings": 2048, "model_type": "llama",
    "num_attention_heads": 32, "num_hidden_layers": 22, "num_key_value_heads": 4,
    "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null,
    "tie_word_embeddings": false, "torch_dtype": "float32", "use_cache": true,
    "vocab_size": 32000})"),
            1100048384);
  // SmolLM2 135M
  EXPECT_EQ(parameters(R"({
    "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 0, "eos_token_id": 0, "hidden_act": "silu", "hidden_size": 576,
    "initializer_range": 0.041666666666666664, "intermediate_size": 1536, "is_llama_config": true,
    "max_position_embeddings": 8192, "model_type": "llama", "num_attention_heads": 9,
    "num_hidden_layers": 30, "num_key_value_heads": 3, "pretraining_tp": 1,
    "rms_norm_eps": 1e-05, "rope_interleaved": false, "rope_scaling": null,
    "rope_theta": 100000, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
    "use_cache": true, "vocab_size": 49152})"),
            134515008);
}

TEST(LlamaTest, RefusesAScaledRopeThatMakesNoSense) {
  const auto refused = [](const char* key, const json& value) {
    json scaling = Llama3Scaling();
    scaling[key] = value;
    if (value.is_null()) scaling.erase(key);
    ExpectRefused(With("rope_scaling", scaling), absl::StrCat("rope_scaling.", key));
  };
  for (const char* key :
       {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
    refused(key, nullptr);
    refused(key, "8");
    refused(key, 0);
    refused(key, 1e300);
  }
  refused("high_freq_factor", 1.0);
  json other = NewStyle();
  other["rope_parameters"].update(Llama3Scaling());
  other["rope_scaling"] = Llama3Scaling();
  other["rope_scaling"]["factor"] = 8.0;
  ExpectRefused(other, "rope_scaling");
}

TEST(LlamaTest, ScalesLongWavesOfRope) {
  const RopeScaling scaling = {
      .factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_max_positions = 64};
  const auto of_wavelength = [](float positions) {
    return 2 * std::numbers::pi_v<float> / positions;
  };
  EXPECT_EQ(ScaledFrequency(scaling, of_wavelength(10)), of_wavelength(10));
  EXPECT_EQ(ScaledFrequency(scaling, of_wavelength(100)), of_wavelength(100) / 8);
  // 64 / 32 = 2, a third of the way from 1 to 4.
  EXPECT_NEAR(ScaledFrequency(scaling, of_wavelength(32)),
              of_wavelength(32) * (1.0f / 3 + 2.0f / 3 / 8), 1e-6f);
}

TEST(LlamaTest, RefusesWhatIsNotBuiltByKey) {
  ExpectRefused(With("rope_scaling", {{"type", "linear"}, {"factor", 2}}), "rope_scaling.type");
  ExpectRefused(With("rope_scaling", "linear"), "rope_scaling");
  ExpectRefused(With("rope_parameters", {{"rope_type", "yarn"}}), "rope_parameters.rope_type");
  ExpectRefused(With("rope_parameters", {{"partial_rotary_factor", 0.5}}),
                "rope_parameters.partial_rotary_factor");
  ExpectRefused(With("partial_rotary_factor", 0.5), "partial_rotary_factor");
  ExpectRefused(With("attention_bias", true), "attention_bias");
  ExpectRefused(With("mlp_bias", true), "mlp_bias");
  ExpectRefused(With("attention_dropout", 0.1), "attention_dropout");
  ExpectRefused(With("sliding_window", 4096), "sliding_window");
  ExpectRefused(With("hidden_act", "gelu"), "hidden_act");
  ExpectRefused(With("quantization_config", {{"bits", 4}}), "quantization_config");
  ExpectRefused(With("model_type", "gpt2"), "model_type");
  ExpectRefused(With("model_type", nullptr), "model_type");
  ExpectRefused(With("model_type", 3), "model_type");
  ExpectRefused(With("architectures", {"MistralForCausalLM"}), "architectures");
  ExpectRefused(With("architectures", json::array({"LlamaForCausalLM", "LlamaModel"})),
                "architectures");
}

TEST(LlamaTest, RefusesSizesThatDoNotFit) {
  for (const char* key :
       {"hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
        "head_dim", "intermediate_size", "vocab_size", "max_position_embeddings"}) {
    for (const json& value :
         {json(0), json(-1), json(1.5), json("64"), json(true), json(UINT64_MAX), json(1 << 25)}) {
      ExpectRefused(With(key, value), key);
    }
  }
  for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads",
                          "intermediate_size", "vocab_size"}) {
    ExpectRefused(With(key, nullptr), key);
  }
  for (const char* key : {"rms_norm_eps", "initializer_range", "rope_theta"}) {
    for (const json& value : {json(0), json(-1), json(1e300), json("1")})
      ExpectRefused(With(key, value), key);
  }
  ExpectRefused(With("num_key_value_heads", 3), "num_key_value_heads");
  ExpectRefused(With("head_dim", 15), "head_dim");
  ExpectRefused(With("tie_word_embeddings", 1), "tie_word_embeddings");
  ExpectRefused(With("rope_theta", 10000), "rope_theta");  // rope_parameters say 50000
  json uneven = With("hidden_size", 66);
  uneven.erase("head_dim");
  ExpectRefused(uneven, "num_attention_heads");
}

TEST(LlamaTest, RefusesWhatIsNotAnObjectOfUniqueKeys) {
  for (std::string text :
       {std::string(), std::string("[]"), std::string("{"), std::string("{}\0", 3),
        std::string(R"({"a": 1, "a": 1})"), std::string("{\"a\": \"\xff\"}"),
        std::string(1000, '['), std::string("{} {}")}) {
    const absl::Status status = Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("config.json"));
  }
}

TEST(LlamaTest, WritesWhatItReads) {
  DecoderConfig config = Expected();
  for (bool tied : {false, true}) {
    config.tied_embeddings = tied;
    const std::string text = Decoder(config).ConfigJson();
    const auto again = Parse(text);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, config);
    EXPECT_EQ(Decoder(*again).ConfigJson(), text);
    EXPECT_THAT(text, HasSubstr("\"rms_norm_eps\": 1e-05"));
    config.rope.scaling = RopeScaling{.factor = 32, .original_max_positions = 8192};
  }
}

// Cutting the text anywhere, or turning any byte into any of a few others, gives a config or
// InvalidArgument.
TEST(LlamaTest, DamagedTextIsAConfigOrInvalidArgument) {
  const std::string text = NewStyle().dump();
  for (size_t i = 0; i < text.size(); ++i) {
    EXPECT_EQ(Parse(text.substr(0, i)).status().code(), absl::StatusCode::kInvalidArgument) << i;
    for (int flip : {0x01, 0x08, 0x10, 0x80, 0xFF}) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      const absl::Status status = Parse(damaged).status();
      EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument) << status;
    }
  }
}

TEST(LlamaTest, ListsTheTensorsOfTheGoldenModel) {
  const Manifest manifest = *Manifest::Create(Decoder(Expected()).Tensors());
  ASSERT_EQ(manifest.tensors().size(), 21u);
  EXPECT_EQ(manifest.tensors()[0], (TensorSpec{"lm_head.weight", {256, 64}}));
  EXPECT_EQ(manifest.tensors()[1], (TensorSpec{"model.embed_tokens.weight", {256, 64}}));
  EXPECT_EQ(manifest.tensors()[3], (TensorSpec{"model.layers.0.mlp.down_proj.weight", {64, 160}}));
  EXPECT_EQ(manifest.tensors()[7],
            (TensorSpec{"model.layers.0.self_attn.k_proj.weight", {32, 64}}));
  EXPECT_EQ(manifest.tensors()[20], (TensorSpec{"model.norm.weight", {64}}));
  // total_parameters of the sharded golden model's index
  EXPECT_EQ(Layout::Create(manifest, kDefaultSegmentBlocks)->elements(), 119104);
}

TEST(LlamaTest, PutsSharedTensorsInTwoUnits) {
  for (const bool tied : {false, true}) {
    DecoderConfig config = Expected();
    config.tied_embeddings = tied;
    const Decoder llama(config);
    std::map<std::string, int> uses;
    for (const UnitSpec& unit : llama.Units()) {
      for (const std::string& tensor : unit.tensors) ++uses[tensor];
    }
    EXPECT_EQ(uses.size(), llama.Tensors().size());
    for (const TensorSpec& tensor : llama.Tensors()) {
      const bool shared = tied && tensor.name == "model.embed_tokens.weight";
      EXPECT_EQ(uses[tensor.name], shared ? 2 : 1) << tensor.name;
    }
  }
}

TEST(LlamaTest, UnitsAreEmbeddingBlocksAndHead) {
  const Decoder llama(Expected());
  const std::vector<UnitSpec> units = llama.Units();
  ASSERT_EQ(units.size(), 4u);
  EXPECT_EQ(units[0].name, "embedding");
  EXPECT_EQ(units[2].name, "block 1");
  EXPECT_EQ(units[3].name, "head");
  const Manifest manifest = *Manifest::Create(llama.Tensors());
  EXPECT_THAT(UnitTensors(llama, manifest).back(), ::testing::ElementsAre(20, 0));
}

TEST(LlamaTest, CountsOperationsOfAToken) {
  // A layer: q and o 64 x 64, k and v 32 x 64, three of 64 x 160; the head 256 x 64; scores over
  // 100 positions.
  const double matrices = 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 160) + 256 * 64;
  EXPECT_EQ(Decoder(Expected()).FlopsPerToken(100), 6 * matrices + 12 * 2 * 64 * 100);
}

}  // namespace
}  // namespace distro
