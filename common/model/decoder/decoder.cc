#include "common/model/decoder/decoder.h"

#include <algorithm>
#include <charconv>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/model/config_reader.h"
#include "common/model/decoder/layer_keys.h"

namespace distro {
namespace {

using nlohmann::json;

constexpr absl::string_view kEmbedding = "model.embed_tokens.weight";
constexpr absl::string_view kLastNorm = "model.norm.weight";
constexpr absl::string_view kHead = "lm_head.weight";

json ClassOf(const DecoderKind& kind) { return json::array({std::string(kind.class_name)}); }

void ReadClass(ConfigReader& reader, const DecoderKind& kind) {
  const json* architectures = reader.Find("architectures");
  if (architectures != nullptr && *architectures != ClassOf(kind)) {
    reader.RefuseValue("architectures", absl::StrCat("is not [\"", kind.class_name,
                                                     "\"], the only one that is built"));
  }
}

void RefuseUnbuilt(ConfigReader& reader, const DecoderKind& kind) {
  if (!kind.qkv_bias) {  // with them there is no such key
    reader.RequireBool("attention_bias", false,
                       "biases are not built: set it to false and use a checkpoint without them");
  }
  reader.RequireBool("mlp_bias", false,
                     "biases are not built: set it to false and use a checkpoint without them");
  reader.RequireNumber("attention_dropout", 0, "dropout is not built: set it to 0");
  reader.RequireString("hidden_act", "silu",
                       "only silu is built: use a checkpoint trained with it");
  reader.RequireAbsent("quantization_config", "use a checkpoint with f32, bf16 or f16 weights");
  reader.RequireNumber("partial_rotary_factor", 1,
                       "only RoPE over the whole head is built: remove it");
}

void ReadHeads(ConfigReader& reader, DecoderConfig* config) {
  config->heads = reader.RequiredInteger("num_attention_heads", 1, 1024);
  const bool as_many = config->kind->default_kv_heads == 0 || reader.IsNull("num_key_value_heads");
  config->kv_heads = reader.Integer("num_key_value_heads", 1, 1024,
                                    as_many ? config->heads : config->kind->default_kv_heads);
  if (config->heads % config->kv_heads != 0) {
    reader.Refuse("num_key_value_heads",
                  absl::StrCat(config->kv_heads, " does not divide num_attention_heads, ",
                               config->heads, "; choose a divisor"));
  }
  int head_dim = config->kind->default_head_dim;
  if (head_dim == 0) head_dim = config->hidden_size / config->heads;
  if (reader.Find("head_dim") == nullptr && config->kind->default_head_dim == 0 &&
      config->hidden_size % config->heads != 0) {
    reader.Refuse("num_attention_heads",
                  absl::StrCat(config->heads, " does not divide hidden_size, ", config->hidden_size,
                               "; choose a divisor or give head_dim"));
  }
  config->head_dim = reader.Integer("head_dim", 1, 1024, head_dim);
  if (config->head_dim % 2 != 0 || config->head_dim == 0) {
    reader.Refuse("head_dim", absl::StrCat(config->head_dim,
                                           " is not an even number above 0, which RoPE needs"));
  }
}

// The shortest decimal that reads back as the same float: 1e-05 rather than 9.999999747378752e-06.
json Shortest(float value) {
  char text[32];
  const std::to_chars_result end = std::to_chars(text, text + sizeof(text), value);
  double result = value;
  std::from_chars(text, end.ptr, result);
  return result;
}

TensorSpec Matrix(std::string name, int64_t out, int64_t in) {
  return {std::move(name), {out, in}};
}

// In the order of BlockParameters in worker/model/decoder/decoder_units.cc.
std::vector<TensorSpec> BlockTensors(const DecoderConfig& c, int layer) {
  const std::string prefix = absl::StrCat("model.layers.", layer, ".");
  const int64_t query = int64_t{c.heads} * c.head_dim, key = int64_t{c.kv_heads} * c.head_dim;
  std::vector<TensorSpec> tensors;
  const auto vector = [&](absl::string_view name, int64_t elements) {
    tensors.push_back({absl::StrCat(prefix, name), {elements}});
  };
  const auto matrix = [&](absl::string_view name, int64_t out, int64_t in) {
    tensors.push_back(Matrix(absl::StrCat(prefix, name, ".weight"), out, in));
  };
  const auto projection = [&](absl::string_view name, int64_t out) {
    matrix(name, out, c.hidden_size);
    if (c.kind->qkv_bias) vector(absl::StrCat(name, ".bias"), out);
  };
  vector("input_layernorm.weight", c.hidden_size);
  projection("self_attn.q_proj", query);
  projection("self_attn.k_proj", key);
  projection("self_attn.v_proj", key);
  if (c.kind->qk_norm) {
    vector("self_attn.q_norm.weight", c.head_dim);
    vector("self_attn.k_norm.weight", c.head_dim);
  }
  matrix("self_attn.o_proj", c.hidden_size, query);
  vector("post_attention_layernorm.weight", c.hidden_size);
  matrix("mlp.gate_proj", c.intermediate_size, c.hidden_size);
  matrix("mlp.up_proj", c.intermediate_size, c.hidden_size);
  matrix("mlp.down_proj", c.hidden_size, c.intermediate_size);
  return tensors;
}

int64_t MatrixElementsOfLayer(const DecoderConfig& c) {
  const int64_t attention = int64_t{2} * c.hidden_size * c.head_dim * (c.heads + c.kv_heads);
  return attention + int64_t{3} * c.hidden_size * c.intermediate_size;
}

}  // namespace

std::vector<absl::string_view> DecoderTypes() {
  std::vector<absl::string_view> types;
  for (const DecoderKind& kind : kDecoderKinds) types.push_back(kind.model_type);
  return types;
}

absl::StatusOr<std::shared_ptr<const Architecture>> ReadDecoder(absl::string_view model_type,
                                                                ConfigReader& reader) {
  DecoderConfig config;
  for (const DecoderKind& kind : kDecoderKinds) {
    if (kind.model_type == model_type) config.kind = &kind;
  }
  ReadClass(reader, *config.kind);
  RefuseUnbuilt(reader, *config.kind);
  config.hidden_size = reader.RequiredInteger("hidden_size", 1, 65536);
  config.layers = reader.RequiredInteger("num_hidden_layers", 1, kMaxLayers);
  ReadHeads(reader, &config);
  config.intermediate_size = reader.RequiredInteger("intermediate_size", 1, 1 << 20);
  config.vocab_size = reader.RequiredInteger("vocab_size", 1, 1 << 24);
  config.max_positions =
      reader.Integer("max_position_embeddings", 1, 1 << 24, config.kind->default_max_positions);
  config.rms_norm_eps = static_cast<float>(reader.Number("rms_norm_eps", 1e-12, 1, 1e-6));
  config.initializer_range =
      static_cast<float>(reader.Number("initializer_range", 1e-12, 10, 0.02));
  config.tied_embeddings = reader.Bool("tie_word_embeddings", config.kind->default_tied);
  ReadLayerKeys(reader, &config);
  const absl::StatusOr<Rope> rope = ReadRope(reader, config.kind->default_theta);
  DISTRO_RETURN_IF_ERROR(reader.status());
  DISTRO_RETURN_IF_ERROR(rope.status());
  config.rope = *rope;
  return std::make_shared<const Decoder>(config);
}

Decoder::Decoder(const DecoderConfig& config)
    : Architecture(config.kind->model_type, {.hidden_size = config.hidden_size,
                                             .layers = config.layers,
                                             .vocab_size = config.vocab_size,
                                             .max_positions = config.max_positions}),
      config_(config) {}

std::string Decoder::ConfigJson() const {
  json config = {
      {"architectures", ClassOf(*config_.kind)},
      {"attention_dropout", 0.0},
      {"bos_token_id", nullptr},
      {"dtype", "float32"},
      {"eos_token_id", nullptr},
      {"head_dim", config_.head_dim},
      {"hidden_act", "silu"},
      {"hidden_size", config_.hidden_size},
      {"initializer_range", Shortest(config_.initializer_range)},
      {"intermediate_size", config_.intermediate_size},
      {"max_position_embeddings", config_.max_positions},
      {"mlp_bias", false},
      {"model_type", std::string(config_.kind->model_type)},
      {"num_attention_heads", config_.heads},
      {"num_hidden_layers", config_.layers},
      {"num_key_value_heads", config_.kv_heads},
      {"rms_norm_eps", Shortest(config_.rms_norm_eps)},
      {"tie_word_embeddings", config_.tied_embeddings},
      {"torch_dtype", "float32"},
      {"vocab_size", config_.vocab_size},
  };
  if (!config_.kind->qkv_bias) config["attention_bias"] = false;
  if (config_.kind->default_padding) config["pad_token_id"] = nullptr;
  WriteLayerKeys(config_, &config);
  WriteRope(config_.rope, &config);
  return WriteJson(config);
}

std::vector<TensorSpec> Decoder::Tensors() const {
  std::vector<TensorSpec> tensors = {
      Matrix(std::string(kEmbedding), config_.vocab_size, config_.hidden_size)};
  for (int layer = 0; layer < config_.layers; ++layer) {
    for (TensorSpec& tensor : BlockTensors(config_, layer)) tensors.push_back(std::move(tensor));
  }
  tensors.push_back({std::string(kLastNorm), {config_.hidden_size}});
  if (!config_.tied_embeddings)
    tensors.push_back(Matrix(std::string(kHead), config_.vocab_size, config_.hidden_size));
  return tensors;
}

std::vector<UnitSpec> Decoder::Units() const {
  std::vector<UnitSpec> units = {{.name = "embedding", .tensors = {std::string(kEmbedding)}}};
  for (int layer = 0; layer < config_.layers; ++layer) {
    UnitSpec& block = units.emplace_back();
    block.name = absl::StrCat("block ", layer);
    for (TensorSpec& tensor : BlockTensors(config_, layer))
      block.tensors.push_back(std::move(tensor.name));
  }
  const absl::string_view head = config_.tied_embeddings ? kEmbedding : kHead;
  units.push_back({.name = "head", .tensors = {std::string(kLastNorm), std::string(head)}});
  return units;
}

InitialValues Decoder::Initial(const TensorSpec& tensor) const {
  if (absl::EndsWith(tensor.name, ".bias")) return {.deviation = 0, .constant = 0};
  const bool is_norm = tensor.shape.size() == 1;
  if (is_norm) return {.deviation = 0, .constant = 1};
  return {.deviation = config_.initializer_range, .constant = 0};
}

double Decoder::FlopsPerToken(int sequence_length) const {
  const int64_t matrices = config_.layers * MatrixElementsOfLayer(config_) +
                           int64_t{config_.vocab_size} * config_.hidden_size;
  const auto windowed = static_cast<int64_t>(config_.windowed.count());
  const int64_t positions = (config_.layers - windowed) * sequence_length +
                            windowed * std::min(config_.window, sequence_length);
  const double attention = 12.0 * config_.heads * config_.head_dim * static_cast<double>(positions);
  return 6.0 * static_cast<double>(matrices) + attention;
}

}  // namespace distro
