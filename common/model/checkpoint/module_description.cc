#include "common/model/checkpoint/module_description.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/utf8.h"

namespace distro {
namespace {

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(kModuleDescription, ": ", what));
}

absl::StatusOr<std::vector<int64_t>> ShapeOf(const std::string& name, const nlohmann::json& shape) {
  const bool ok = shape.is_array() && std::ranges::all_of(shape, [](const nlohmann::json& one) {
                    return one.is_number_unsigned();
                  });
  if (ok) return shape.get<std::vector<int64_t>>();
  return Wrong(absl::StrCat("the shape of ", ShownText(name), " is no list of whole numbers"));
}

}  // namespace

std::string ModuleDescription(const Companions& companions) {
  for (const Companion& companion : companions)
    if (companion.name == kModuleDescription) return companion.bytes;
  return "";
}

absl::StatusOr<Manifest> TrainedTensors(absl::string_view description) {
  absl::StatusOr<nlohmann::json> parsed = ParseJson(description);
  if (!parsed.ok()) return Wrong(parsed.status().message());
  const auto trained = parsed->is_object() ? parsed->find("trained") : parsed->end();
  if (trained == parsed->end() || !trained->is_object())
    return Wrong("\"trained\" is no object of names and shapes");
  std::vector<TensorSpec> tensors;
  for (const auto& [name, shape] : trained->items()) {
    DISTRO_ASSIGN_OR_RETURN(std::vector<int64_t> dimensions, ShapeOf(name, shape));
    tensors.push_back({.name = name, .shape = std::move(dimensions)});
  }
  absl::StatusOr<Manifest> manifest = Manifest::Create(std::move(tensors));
  if (!manifest.ok()) return Annotate(manifest.status(), kModuleDescription);
  return manifest;
}

}  // namespace distro
