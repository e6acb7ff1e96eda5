// Names the matrices inside a model whose architecture this project does not know: a run of
// `"workers": "python"`. Its config.json lists in the key `distro_outside` the matrices that are
// not inside, embedding and head.
//
//   {"model_type": "gpt2", "distro_outside": ["wpe.weight", "wte.weight"]}
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/layout/layout.h"

namespace distro {

// Of each tensor, as TensorsInside (architecture.h): of two dimensions or more, and not listed.
// InvalidArgument: no JSON object, no such key, or a name in it that no tensor has; names the key
// and the remedy.
absl::StatusOr<std::vector<bool>> ListedTensorsInside(const Layout& layout,
                                                      absl::string_view config_json);

// `config_json` with the key set to `names`, for a new run. InvalidArgument: it is not a JSON
// object.
absl::StatusOr<std::string> WithListedOutside(absl::string_view config_json,
                                              std::vector<std::string> names);

}  // namespace distro
