// The rows of common/model/decoder/kinds.h besides Llama's (llama_test.cc).
#include "common/model/decoder/decoder.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/json.h"
#include "common/model/layout/layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

// The required keys; the rest is absent.
json Small(const std::string& type) {
  return {{"model_type", type},
          {"hidden_size", 64},
          {"num_hidden_layers", 4},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"intermediate_size", 96},
          {"max_position_embeddings", 128},
          {"vocab_size", 50}};
}

json With(json config, const json& keys) {
  config.update(keys);
  return config;
}

absl::StatusOr<DecoderConfig> Parse(const json& config) {
  const absl::StatusOr<std::shared_ptr<const Architecture>> model = ParseModelConfig(config.dump());
  if (!model.ok()) return model.status();
  return dynamic_cast<const Decoder&>(**model).config();
}

DecoderConfig Read(const json& config) {
  const absl::StatusOr<DecoderConfig> read = Parse(config);
  EXPECT_TRUE(read.ok()) << read.status() << config;
  return read.ok() ? *read : DecoderConfig();
}

void ExpectRefused(const json& config, const std::string& key) {
  const absl::Status status = Parse(config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << config;
  EXPECT_THAT(std::string(status.message()), HasSubstr(key + ":"));
}

LayerSet Layers(const std::vector<int>& layers) {
  LayerSet set;
  for (const int layer : layers) set[layer] = true;
  return set;
}

// As published, and how many parameters transformers counts.
TEST(DecoderTest, ReadsPublishedConfigs) {
  const auto parameters = [](absl::string_view text) {
    const Decoder model(Read(json::parse(text)));
    const Manifest manifest = *Manifest::Create(model.Tensors());
    return Layout::Create(manifest, kDefaultSegmentBlocks)->elements();
  };
  // Qwen2.5 0.5B
  EXPECT_EQ(parameters(R"({
    "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
    "eos_token_id": 151643, "hidden_act": "silu", "hidden_size": 896, "initializer_range": 0.02,
    "intermediate_size": 4864, "max_position_embeddings": 32768, "max_window_layers": 24,
    "model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 24,
    "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
    "sliding_window": 32768, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
    "use_cache": true, "use_mrope": false, "use_sliding_window": false, "vocab_size": 151936})"),
            494032768);
  // Qwen3 0.6B
  EXPECT_EQ(parameters(R"({
    "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu",
    "hidden_size": 1024, "initializer_range": 0.02, "intermediate_size": 3072,
    "max_position_embeddings": 40960, "max_window_layers": 28, "model_type": "qwen3",
    "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
    "tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_cache": true,
    "use_sliding_window": false, "vocab_size": 151936})"),
            596049920);
  // Mistral 7B v0.1
  EXPECT_EQ(parameters(R"({
    "architectures": ["MistralForCausalLM"], "bos_token_id": 1, "eos_token_id": 2,
    "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
    "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mistral",
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096,
    "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true,
    "vocab_size": 32000})"),
            7241732096);
  // SmolLM3 3B
  EXPECT_EQ(parameters(R"({
    "architectures": ["SmolLM3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": null, "eos_token_id": 128012, "hidden_act": "silu", "hidden_size": 2048,
    "initializer_range": 0.02, "intermediate_size": 11008, "max_position_embeddings": 65536,
    "max_window_layers": 28, "mlp_bias": false, "model_type": "smollm3",
    "no_rope_layer_interval": 4, "num_attention_heads": 16, "num_hidden_layers": 36,
    "num_key_value_heads": 4, "pad_token_id": 128004, "pretraining_tp": 2, "rms_norm_eps": 1e-06,
    "rope_scaling": null, "rope_theta": 5000000.0, "sliding_window": null,
    "torch_dtype": "bfloat16", "use_cache": true, "use_sliding_window": false,
    "vocab_size": 128256})"),
            3075098624);
}

TEST(DecoderTest, TakesTheDefaultsOfTransformersForAbsentKeys) {
  const auto without = [](const std::string& type) {
    json config = With(Small(type), {{"num_attention_heads", 32}});
    for (const char* key : {"num_key_value_heads", "max_position_embeddings"}) config.erase(key);
    return Read(config);
  };
  const DecoderConfig qwen2 = without("qwen2"), qwen3 = without("qwen3");
  EXPECT_EQ(qwen2.kv_heads, 32);
  EXPECT_EQ(qwen2.head_dim, 2);
  EXPECT_EQ(qwen2.max_positions, 32768);
  EXPECT_EQ(qwen2.rope.theta, 10000);
  EXPECT_FALSE(qwen2.tied_embeddings);
  EXPECT_EQ(qwen3.kv_heads, 32);
  EXPECT_EQ(qwen3.head_dim, 128);
  EXPECT_EQ(qwen3.max_positions, 32768);
  const DecoderConfig mistral = without("mistral"), smollm3 = without("smollm3");
  EXPECT_EQ(mistral.kv_heads, 8);
  EXPECT_EQ(mistral.head_dim, 2);
  EXPECT_EQ(mistral.max_positions, 131072);
  EXPECT_EQ(mistral.window, 4096);
  EXPECT_EQ(smollm3.kv_heads, 4);
  EXPECT_EQ(smollm3.max_positions, 32768);
  EXPECT_EQ(smollm3.rope.theta, 2e6);
  EXPECT_TRUE(smollm3.tied_embeddings);
  EXPECT_EQ(smollm3.without_rope, Layers({3}));
  for (const char* type : {"qwen2", "qwen3", "mistral", "smollm3"})
    EXPECT_EQ(Read(With(Small(type), {{"num_key_value_heads", nullptr}})).kv_heads, 4);
}

TEST(DecoderTest, ReadsWhichLayersHaveAWindow) {
  EXPECT_EQ(Read(With(Small("mistral"), {{"sliding_window", nullptr}})).windowed, Layers({}));
  const DecoderConfig mistral = Read(With(Small("mistral"), {{"sliding_window", 7}}));
  EXPECT_EQ(mistral.windowed, Layers({0, 1, 2, 3}));
  EXPECT_EQ(mistral.window, 7);
  for (const char* type : {"qwen2", "qwen3"}) {
    const json off = With(Small(type), {{"sliding_window", 7}, {"max_window_layers", 3}});
    EXPECT_EQ(Read(off).windowed, Layers({}));
    EXPECT_EQ(Read(off).window, 0);
    const json on = With(off, {{"use_sliding_window", true}});
    EXPECT_EQ(Read(on).windowed, Layers({3}));
    EXPECT_EQ(Read(on).window, 7);
    EXPECT_EQ(Read(With(on, {{"max_window_layers", 9}})).windowed, Layers({}));
    const json full = "full_attention", sliding = "sliding_attention";
    EXPECT_EQ(Read(With(on, {{"layer_types", {sliding, full, full, sliding}}})).windowed,
              Layers({0, 3}));
    EXPECT_EQ(Read(With(off, {{"layer_types", {full, full, full, full}}})).windowed, Layers({}));
    ExpectRefused(With(off, {{"layer_types", {full, full, sliding, full}}}), "layer_types");
    ExpectRefused(With(on, {{"sliding_window", nullptr}}), "sliding_window");
    ExpectRefused(With(on, {{"layer_types", {sliding}}}), "layer_types");
    ExpectRefused(With(on, {{"layer_types", "sliding_attention"}}), "layer_types");
    ExpectRefused(With(on, {{"layer_types", {full, full, full, "chunked_attention"}}}),
                  "layer_types");
  }
  const DecoderConfig smollm3 = Read(
      With(Small("smollm3"),
           {{"use_sliding_window", true}, {"sliding_window", 7}, {"no_rope_layer_interval", 2}}));
  EXPECT_EQ(smollm3.windowed, Layers({1, 3}));
  ExpectRefused(With(Small("mistral"), {{"layer_types", {"full_attention"}}}), "layer_types");
  ExpectRefused(With(Small("mistral"), {{"sliding_window", 0}}), "sliding_window");
}

TEST(DecoderTest, ReadsWhichLayersHaveRope) {
  const auto without_rope = [](const json& keys) {
    return Read(With(Small("smollm3"), keys)).without_rope;
  };
  EXPECT_EQ(without_rope({{"no_rope_layer_interval", 2}}), Layers({1, 3}));
  EXPECT_EQ(without_rope({{"no_rope_layers", {0, 1, 1, 0}}, {"no_rope_layer_interval", 2}}),
            Layers({0, 3}));
  EXPECT_EQ(without_rope({{"no_rope_layers", {1, 1, 1, 1, 0}}}), Layers({}));  // may be longer
  EXPECT_EQ(without_rope({{"no_rope_layers", nullptr}}), Layers({3}));
  ExpectRefused(With(Small("smollm3"), {{"no_rope_layers", {1, 1, 1}}}), "no_rope_layers");
  ExpectRefused(With(Small("smollm3"), {{"no_rope_layers", {1, 1, 1, 2}}}), "no_rope_layers");
  ExpectRefused(With(Small("smollm3"), {{"no_rope_layers", 4}}), "no_rope_layers");
  ExpectRefused(With(Small("smollm3"), {{"no_rope_layer_interval", 0}}), "no_rope_layer_interval");
}

TEST(DecoderTest, RefusesWhatIsNotBuiltByKey) {
  for (const char* type : {"qwen2", "qwen3", "mistral", "smollm3"}) {
    const json config = Small(type);
    ExpectRefused(With(config, {{"mlp_bias", true}}), "mlp_bias");
    ExpectRefused(With(config, {{"attention_dropout", 0.1}}), "attention_dropout");
    ExpectRefused(With(config, {{"hidden_act", "gelu"}}), "hidden_act");
    ExpectRefused(With(config, {{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}}}),
                  "rope_scaling.rope_type");
    ExpectRefused(With(config, {{"architectures", json::array({"LlamaForCausalLM"})}}),
                  "architectures");
  }
  for (const char* type : {"qwen3", "mistral", "smollm3"})
    ExpectRefused(With(Small(type), {{"attention_bias", true}}), "attention_bias");
}

// With every switch away from what is absent.
TEST(DecoderTest, WritesWhatItReads) {
  const json keys = {{"head_dim", 6},
                     {"initializer_range", 0.1},
                     {"no_rope_layers", {0, 1, 1, 0}},
                     {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 5e4}}},
                     {"sliding_window", 9},
                     {"use_sliding_window", true},
                     {"max_window_layers", 1}};
  for (const char* type : {"qwen2", "qwen3", "mistral", "smollm3"}) {
    for (const json& config : {Small(type), With(Small(type), keys)}) {
      const DecoderConfig read = Read(config);
      const std::string text = Decoder(read).ConfigJson();
      EXPECT_EQ(Read(json::parse(text)), read) << text;
      EXPECT_EQ(json::parse(text)["model_type"], type);
    }
  }
  // transformers has a padding token by default, which a small vocabulary does not have.
  EXPECT_THAT(Decoder(Read(Small("smollm3"))).ConfigJson(), HasSubstr("\"pad_token_id\": null"));
}

// Cutting the text anywhere, or turning any byte into any of a few others, gives a config or
// InvalidArgument.
TEST(DecoderTest, ReadsDamagedTextAsAConfigOrRefusesIt) {
  const std::string text =
      With(Small("smollm3"),
           {{"no_rope_layers", {0, 1, 1, 0}},
            {"use_sliding_window", true},
            {"sliding_window", 7},
            {"layer_types",
             {"full_attention", "sliding_attention", "sliding_attention", "full_attention"}}})
          .dump();
  ASSERT_TRUE(ParseModelConfig(text).ok());
  for (size_t i = 0; i < text.size(); ++i) {
    EXPECT_EQ(ParseModelConfig(text.substr(0, i)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << i;
    for (const int flip : {0x01, 0x08, 0x10, 0x80, 0xFF}) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      const absl::Status status = ParseModelConfig(damaged).status();
      EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument) << status;
    }
  }
}

TEST(DecoderTest, ListsBiasesAndNormsOfHeads) {
  const Decoder qwen2(Read(Small("qwen2"))), qwen3(Read(With(Small("qwen3"), {{"head_dim", 8}})));
  const std::string layer = "model.layers.2.self_attn.";
  EXPECT_EQ(qwen2.Tensors().size(), 2u + 4 * 12 + 1);
  EXPECT_THAT(qwen2.Tensors(), IsSupersetOf({TensorSpec{layer + "q_proj.bias", {64}},
                                             TensorSpec{layer + "k_proj.bias", {32}},
                                             TensorSpec{layer + "v_proj.bias", {32}}}));
  EXPECT_EQ(qwen3.Tensors().size(), 2u + 4 * 11 + 1);
  EXPECT_THAT(qwen3.Tensors(), IsSupersetOf({TensorSpec{layer + "q_norm.weight", {8}},
                                             TensorSpec{layer + "k_norm.weight", {8}}}));
  const InitialValues bias = qwen2.Initial({layer + "q_proj.bias", {64}});
  EXPECT_EQ(bias.deviation, 0);
  EXPECT_EQ(bias.constant, 0);
  EXPECT_EQ(qwen3.Initial({layer + "q_norm.weight", {8}}).constant, 1);
}

// Only matrices inside are Muon's, and a gradient has room for all tensors of its unit.
TEST(DecoderTest, CountsVectorsWhereverTensorsAre) {
  for (const char* type : {"qwen2", "qwen3", "mistral", "smollm3"}) {
    const Decoder model(Read(Small(type)));
    const Layout layout = *Layout::Create(*Manifest::Create(model.Tensors()), 4);
    const std::vector<std::vector<int>> units = UnitTensors(model, layout.manifest());
    const std::vector<bool> inside = TensorsInside(layout, units);
    int64_t elements = 0;
    for (const int tensor : units[1]) {
      const TensorSpec& spec = layout.manifest().tensors()[tensor];
      EXPECT_EQ(inside[tensor], spec.shape.size() == 2) << spec.name;
      elements += layout.tensors()[tensor].matrix.elements;
    }
    EXPECT_EQ(model.Memory(1, 16, 4, false).units[1].gradients, 4 * elements) << type;
  }
}

TEST(DecoderTest, CountsAtMostAWindowOfPositions) {
  const auto flops = [](const json& window, int positions) {
    return Decoder(Read(With(Small("mistral"), {{"sliding_window", window}})))
        .FlopsPerToken(positions);
  };
  EXPECT_EQ(flops(20, 20), flops(nullptr, 20));
  EXPECT_EQ(flops(20, 100), flops(nullptr, 20));
}

}  // namespace
}  // namespace distro
