// `distroctl init-model`: the folder that a run begins with. Random weights for a model that
// distro-worker has; or, for a run of `"workers": "python"`, tensors of a safetensors file, or
// random ones for a manifest of tensors (docs/checkpoints.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct InitModelOptions {
  // A config.json, Hugging Face layout. Required, unless one of the next two is given: then it is
  // only written beside the tensors.
  std::string config = {};
  std::string from_safetensors = {};  // a file, or a folder that OpenStoredTensors takes
  std::string from_manifest = {};     // a file that ParseTensorManifest takes
  // With one of these two: the matrices that are not inside the model, embedding and head. Not
  // given: what config.json lists (common/model/listed_tensors.h).
  std::optional<std::vector<std::string>> outside = {};
  std::string out;  // folder to write. Required; must not hold a checkpoint yet.
  uint64_t seed = 0;
};

// Writes config.json and model.safetensors; the same bytes from the same seed on every machine.
// Returns a line for people. InvalidArgument: the configuration, the tensors or their list.
// AlreadyExists: `out` holds a checkpoint. ResourceExhausted: the parameters do not fit in memory.
absl::StatusOr<Report> InitModel(const InitModelOptions& options);

Command InitModelCommand(const Console* console);

}  // namespace distro::tools
