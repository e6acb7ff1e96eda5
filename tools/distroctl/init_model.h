// `distroctl init-model`: makes the folder with which a run begins. It writes random weights for a
// model that distro-worker supports. For a run of `"workers": "python"` it writes the tensors of a
// safetensors file, or random ones for a manifest of tensors (docs/checkpoints.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct InitModelOptions {
  // A config.json, Hugging Face layout. Required, unless one of the next two is given; in that case
  // it is only copied beside the tensors.
  std::string config = {};
  std::string from_safetensors = {};  // a file, or a folder that OpenStoredTensors takes
  std::string from_manifest = {};     // a file that ParseTensorManifest takes
  // With one of those two: the matrices outside the model, embedding and head. nullopt: those that
  // config.json lists (common/model/listed_tensors.h).
  std::optional<std::vector<std::string>> outside = {};
  std::string out;  // folder to write. Required; must not contain a checkpoint
  uint64_t seed = 0;
};

// Writes config.json and model.safetensors; the same seed gives the same bytes on every machine.
// Returns one line for people. InvalidArgument: the configuration, the tensors or their list.
// AlreadyExists: `out` contains a checkpoint. ResourceExhausted: the parameters do not fit in
// memory.
absl::StatusOr<Report> InitModel(const InitModelOptions& options);

Command InitModelCommand(const Console* console);

}  // namespace distro::tools
