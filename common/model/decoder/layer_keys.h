// The keys of a decoder's config.json that distinguish its layers: which have RoPE, and which a
// window.
#pragma once

#include "common/model/decoder/decoder.h"
#include "nlohmann/json_fwd.hpp"

namespace distro {

class ConfigReader;

// Sets without_rope, windowed and window from no_rope_layers, no_rope_layer_interval,
// use_sliding_window, sliding_window, layer_types and max_window_layers, as far as the class of
// config->kind has them. Requires its `kind` and `layers`. Errors are the reader's.
void ReadLayerKeys(ConfigReader& reader, DecoderConfig* config);

// Sets keys from which ReadLayerKeys and transformers read the same; none of a class without them.
void WriteLayerKeys(const DecoderConfig& config, nlohmann::json* json);

}  // namespace distro
