// Finds the matrices inside a model whose architecture this project does not know: in a run of
// `"workers": "python"`. Its config.json lists the matrices outside, embedding and head, in the key
// `distro_outside`.
//
//   {"model_type": "gpt2", "distro_outside": ["wpe.weight", "wte.weight"]}
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/layout/layout.h"

namespace distro {

// For each tensor, as TensorsInside (architecture.h): whether it has two dimensions or more and is
// not listed. InvalidArgument: no JSON object, no such key, or an unknown name in it; names the key
// and the remedy.
absl::StatusOr<std::vector<bool>> ListedTensorsInside(const Layout& layout,
                                                      absl::string_view config_json);

// Sets the key in `config_json` to `names`, for a new run. InvalidArgument: it is not a JSON
// object.
absl::StatusOr<std::string> WithListedOutside(absl::string_view config_json,
                                              std::vector<std::string> names);

}  // namespace distro
