// Selects the tensors of a run that Muon steps. Their blocks are sent as DCT, so the aggregator,
// and workers without an architecture of their own, need the list too. Pure; thread-safe.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/layout/layout.h"
#include "distro/v1/run.pb.h"

namespace distro {

// For each tensor, whether Muon steps it; false for all if AdamW steps all. `config` is complete
// and of a deltas run. `model_config_json` is the run's: its architecture determines the tensors
// inside the model, or, with workers "python", its list (common/model/listed_tensors.h).
// InvalidArgument: this version does not support the model, or the layout is of another model;
// names the key and the remedy.
absl::StatusOr<std::vector<bool>> MuonTensorsOf(const v1::RunConfig& config, const Layout& layout,
                                                absl::string_view model_config_json);

}  // namespace distro
