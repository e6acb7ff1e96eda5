// What `distro_train.save_initial` says of a module in distro_module.json, a companion of the run
// (docs/python.md, "The rest of the module"). This side reads the tensors that the run trains, to
// name those that differ in a worker's module; the rest is compared in Python. Pure.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/checkpoint/companions.h"
#include "common/model/layout/manifest.h"

namespace distro {

inline constexpr absl::string_view kModuleDescription = "distro_module.json";

// The text of the description; empty: the run has none.
std::string ModuleDescription(const Companions& companions);

// Its tensors: {"trained": {NAME: SHAPE, ...}, ...}. InvalidArgument: the text is not such a
// description; names the key.
absl::StatusOr<Manifest> TrainedTensors(absl::string_view description);

}  // namespace distro
