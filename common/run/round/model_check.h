// Checks that the workers of a run can train its model. The check runs when a run is created,
// before gigabytes are uploaded. Pure; thread-safe.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/model/layout/layout.h"
#include "distro/v1/run.pb.h"

namespace distro {

// OK if workers can train the model; always for workers "python", which have their own model.
// `config` is complete. InvalidArgument: as ModelOfRun, or a sequence_length above the model's
// positions.
absl::Status CheckModelOfRun(const v1::RunConfig& config, const Layout& layout,
                             absl::string_view model_config_json);

}  // namespace distro
