#include "common/model/architecture.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/foreign_file.h"
#include "common/base/json.h"
#include "common/model/config_reader.h"
#include "common/model/decoder/decoder.h"

namespace distro {
namespace {

struct Family {
  std::vector<absl::string_view> (*types)();
  absl::StatusOr<std::shared_ptr<const Architecture>> (*read)(absl::string_view model_type,
                                                              ConfigReader&);
};

// All architectures, with the readers of their keys. worker/model/units.cc has the other table.
constexpr Family kFamilies[] = {
    {&DecoderTypes, &ReadDecoder},
};

std::string Names() {
  return absl::StrJoin(ModelTypes(), ", ", [](std::string* text, absl::string_view type) {
    absl::StrAppend(text, "\"", type, "\"");
  });
}

}  // namespace

std::vector<absl::string_view> ModelTypes() {
  std::vector<absl::string_view> types;
  for (const Family& family : kFamilies) {
    for (const absl::string_view type : family.types()) types.push_back(type);
  }
  return types;
}

absl::StatusOr<std::shared_ptr<const Architecture>> ParseModelConfig(absl::string_view text) {
  const absl::StatusOr<nlohmann::json> object = ParseJson(text);
  if (!object.ok())
    return absl::InvalidArgumentError(absl::StrCat("config.json: ", object.status().message()));
  if (!object->is_object()) return absl::InvalidArgumentError("config.json: is not a JSON object");
  ConfigReader reader(*object, "config.json: ");
  const std::string type = reader.String("model_type", "");
  for (const Family& family : kFamilies) {
    if (absl::c_linear_search(family.types(), type)) return family.read(type, reader);
  }
  if (reader.Find("model_type") == nullptr) {
    reader.Refuse("model_type", absl::StrCat("is missing; there is ", Names()));
    if (const std::string what = ForeignFormat(text); !what.empty())
      return absl::InvalidArgumentError(absl::StrCat("config.json: ", what));
  } else {
    reader.RefuseValue("model_type", absl::StrCat("is not supported; there is ", Names()));
  }
  return reader.status();
}

absl::Status CheckSequenceLength(uint32_t sequence_length, const ModelSizes& sizes) {
  if (sequence_length <= static_cast<uint32_t>(sizes.max_positions)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("sequence_length: ", sequence_length,
                   " exceeds the model's max_position_embeddings, ", sizes.max_positions,
                   ": lower it in run.json, or raise max_position_embeddings in config.json"));
}

std::vector<std::vector<int>> UnitTensors(const Architecture& model, const Manifest& manifest) {
  const auto tensors = manifest.tensors();
  std::vector<std::vector<int>> units;
  for (const UnitSpec& unit : model.Units()) {
    std::vector<int>& indices = units.emplace_back();
    for (const std::string& name : unit.tensors) {
      const auto found = std::find_if(tensors.begin(), tensors.end(),
                                      [&](const TensorSpec& one) { return one.name == name; });
      indices.push_back(static_cast<int>(found - tensors.begin()));
    }
  }
  return units;
}

std::vector<bool> TensorsInside(const Layout& layout, const std::vector<std::vector<int>>& units) {
  std::vector<bool> inside;
  for (const TensorLayout& tensor : layout.tensors()) inside.push_back(tensor.decays);
  for (const std::vector<int>* outer : {&units.front(), &units.back()}) {
    for (const int tensor : *outer) inside[tensor] = false;
  }
  return inside;
}

}  // namespace distro
