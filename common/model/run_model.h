// The model of a run whose workers are not "python". Pure; thread-safe.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/architecture.h"
#include "common/model/layout/layout.h"

namespace distro {

// InvalidArgument: this version does not support the model of config.json, or its tensors are not
// the layout's; names the key and the remedy.
absl::StatusOr<std::shared_ptr<const Architecture>> ModelOfRun(const Layout& layout,
                                                               absl::string_view model_config_json);

}  // namespace distro
