// Compares the tensors of a checkpoint with those of its config.json's model, and explains the
// usual differences. Pure; thread-safe.
#pragma once

#include "absl/status/status.h"
#include "common/model/architecture.h"
#include "common/model/layout/manifest.h"

namespace distro {

// InvalidArgument: `weights` are not the model's tensors. The message names the first tensors that
// differ, with both shapes and the number of the others, and the remedy for this reason.
absl::Status CheckModelTensors(const Architecture& model, const Manifest& weights);

}  // namespace distro
