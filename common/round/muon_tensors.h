// Selects the tensors of a run that Muon steps. Their blocks travel as their DCT, so the aggregator
// and a worker without an architecture of its own need the list, too. Pure; thread-safe.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/layout/layout.h"
#include "distro/v1/run.pb.h"

namespace distro {

// Of each tensor; none where AdamW steps all. `config` is complete, of a run of deltas;
// `model_config_json` is the run's: the model's own says which are inside, or, with workers
// "python", its list (common/model/listed_tensors.h). InvalidArgument: it is not of a model that
// this version knows, or not of that of the layout; names the key and the remedy.
absl::StatusOr<std::vector<bool>> MuonTensorsOf(const v1::RunConfig& config, const Layout& layout,
                                                absl::string_view model_config_json);

}  // namespace distro
