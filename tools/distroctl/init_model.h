// `distroctl init-model`: random initial weights for a model configuration.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct InitModelOptions {
  std::string config;  // path of a config.json, Hugging Face layout. Required.
  std::string out;     // folder to write. Required; must not hold a checkpoint yet.
  uint64_t seed = 0;
};

// Writes config.json and model.safetensors; the same bytes from the same seed on every machine.
// Returns a line for people. InvalidArgument: the configuration. AlreadyExists: `out` holds a
// checkpoint.
absl::StatusOr<Report> InitModel(const InitModelOptions& options);

Command InitModelCommand(const Console* console);

}  // namespace distro::tools
