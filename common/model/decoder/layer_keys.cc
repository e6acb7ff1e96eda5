#include "common/model/decoder/layer_keys.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/json.h"
#include "common/model/config_reader.h"

namespace distro {
namespace {

using nlohmann::json;

constexpr int kMaxWindow = 1 << 24;
constexpr int kDefaultWindow = 4096;
constexpr int kDefaultWindowLayers = 28;
constexpr int kDefaultRopeInterval = 4;
constexpr char kFull[] = "full_attention";
constexpr char kSliding[] = "sliding_attention";

// The array of the key with `entries` or more; nullptr if it is absent or refused.
const json* FindList(ConfigReader& reader, const char* key, int entries, bool more) {
  const json* list = reader.Find(key);
  if (list == nullptr) return nullptr;
  const size_t wanted = static_cast<size_t>(entries);
  if (list->is_array() && (list->size() == wanted || (more && list->size() > wanted))) return list;
  reader.Refuse(
      key, absl::StrCat("is not a list with one entry for each of num_hidden_layers, ", entries));
  return nullptr;
}

void ReadRopeLayers(ConfigReader& reader, DecoderConfig* config) {
  const int64_t interval =
      reader.Integer("no_rope_layer_interval", 1, kMaxLayers, kDefaultRopeInterval);
  const json* list = FindList(reader, "no_rope_layers", config->layers, /*more=*/true);
  for (int layer = 0; layer < config->layers; ++layer) {
    if (list == nullptr) {
      config->without_rope[layer] = (layer + 1) % interval == 0;
      continue;
    }
    const json& entry = (*list)[layer];  // despite its name, 1 is a layer with RoPE
    if (entry != 0 && entry != 1) reader.Refuse("no_rope_layers", "has entries other than 0 and 1");
    config->without_rope[layer] = entry == 0;
  }
}

// The layers that have windows where layer_types is absent.
LayerSet DefaultWindowed(ConfigReader& reader, const DecoderConfig& config) {
  if (config.kind->windows == Windows::kLayersWithoutRope) return config.without_rope;
  const int64_t first = reader.Integer("max_window_layers", 0, kMaxLayers, kDefaultWindowLayers);
  LayerSet windowed;
  for (int64_t layer = first; layer < config.layers; ++layer) windowed[layer] = true;
  return windowed;
}

LayerSet ReadLayerTypes(ConfigReader& reader, const DecoderConfig& config) {
  const json* list = FindList(reader, "layer_types", config.layers, /*more=*/false);
  if (list == nullptr) return DefaultWindowed(reader, config);
  LayerSet windowed;
  for (int layer = 0; layer < config.layers; ++layer) {
    windowed[layer] = (*list)[layer] == kSliding;
    if (!windowed[layer] && (*list)[layer] != kFull) {
      reader.Refuse("layer_types", absl::StrCat("has entries other than \"", kFull, "\" and \"",
                                                kSliding, "\", which alone are built"));
    }
  }
  return windowed;
}

// One window for all layers; transformers reads null as none.
void ReadOnlyWindow(ConfigReader& reader, DecoderConfig* config) {
  reader.RequireAbsent("layer_types", "all layers of this class have the same window: remove it");
  if (reader.IsNull("sliding_window")) return;
  config->window = reader.Integer("sliding_window", 1, kMaxWindow, kDefaultWindow);
  for (int layer = 0; layer < config->layers; ++layer) config->windowed[layer] = true;
}

void ReadWindows(ConfigReader& reader, DecoderConfig* config) {
  const bool uses = reader.Bool("use_sliding_window", false);
  const bool listed = reader.Find("layer_types") != nullptr;
  if (uses || listed) config->windowed = ReadLayerTypes(reader, *config);
  if (config->windowed.none()) return;
  if (!uses) {
    reader.Refuse("layer_types", absl::StrCat("has \"", kSliding,
                                              "\", which use_sliding_window contradicts: set it"));
    return;
  }
  config->window = reader.RequiredInteger("sliding_window", 1, kMaxWindow);
}

}  // namespace

void ReadLayerKeys(ConfigReader& reader, DecoderConfig* config) {
  if (config->kind->no_rope_layers) ReadRopeLayers(reader, config);
  switch (config->kind->windows) {
    case Windows::kNone:
      reader.RequireAbsent("sliding_window", "this class has full attention only: remove it");
      return;
    case Windows::kEveryLayer:
      return ReadOnlyWindow(reader, config);
    case Windows::kUpperLayers:
    case Windows::kLayersWithoutRope:
      return ReadWindows(reader, config);
  }
}

void WriteLayerKeys(const DecoderConfig& config, json* out) {
  const Windows windows = config.kind->windows;
  if (config.kind->no_rope_layers) {
    json& list = (*out)["no_rope_layers"] = json::array();
    for (int layer = 0; layer < config.layers; ++layer)
      list.push_back(config.without_rope[layer] ? 0 : 1);
  }
  if (windows == Windows::kNone) return;
  (*out)["sliding_window"] = config.window > 0 ? json(config.window) : json();
  if (windows == Windows::kEveryLayer) return;
  (*out)["use_sliding_window"] = config.window > 0;
  json& types = (*out)["layer_types"] = json::array();
  for (int layer = 0; layer < config.layers; ++layer)
    types.push_back(config.windowed[layer] ? kSliding : kFull);
}

}  // namespace distro
