#include "common/model/listed_tensors.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/json.h"
#include "common/base/utf8.h"

namespace distro {
namespace {

constexpr absl::string_view kKey = "distro_outside";

absl::Status Refuse(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("config.json: ", kKey, ": ", why));
}

}  // namespace

absl::StatusOr<std::vector<bool>> ListedTensorsInside(const Layout& layout,
                                                      absl::string_view config_json) {
  const absl::StatusOr<nlohmann::json> config = ParseJson(config_json);
  if (!config.ok())
    return absl::InvalidArgumentError(absl::StrCat("config.json: ", config.status().message()));
  const auto listed = config->is_object() ? config->find(kKey) : config->end();
  if (listed == config->end() || !listed->is_array()) {
    return Refuse(
        "is not there or no list: name the matrices that are embedding or head, [] for none "
        "(distro_train.save_initial and distroctl init-model --outside write it)");
  }
  const auto tensors = layout.manifest().tensors();
  std::vector<bool> inside;
  for (const TensorLayout& tensor : layout.tensors()) inside.push_back(tensor.decays);
  for (const nlohmann::json& entry : *listed) {
    const std::string name =
        entry.is_string() ? entry.get<std::string>() : entry.dump(-1, ' ', true);
    const auto found = std::ranges::lower_bound(tensors, name, {}, &TensorSpec::name);
    if (!entry.is_string() || found == tensors.end() || found->name != name) {
      return Refuse(absl::StrCat("no tensor is named \"", ShownText(name, 80),
                                 "\": list names of tensors of the model"));
    }
    inside[found - tensors.begin()] = false;
  }
  return inside;
}

absl::StatusOr<std::string> WithListedOutside(absl::string_view config_json,
                                              std::vector<std::string> names) {
  absl::StatusOr<nlohmann::json> config = ParseJson(config_json);
  if (!config.ok())
    return absl::InvalidArgumentError(absl::StrCat("config.json: ", config.status().message()));
  if (!config->is_object()) return absl::InvalidArgumentError("config.json: is not a JSON object");
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  (*config)[std::string(kKey)] = std::move(names);
  return WriteJson(*config);
}

}  // namespace distro
