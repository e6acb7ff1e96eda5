#include "common/model/tensor_manifest.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/utf8.h"
#include "common/model/config_reader.h"
#include "common/model/init_weights.h"

namespace distro {
namespace {

using nlohmann::json;

constexpr int64_t kVersion = 1;
constexpr int64_t kMaxDimension = int64_t{1} << 40;
constexpr double kDefaultDeviation = 0.02;

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

// A name from the file, escaped and shortened for a message.
std::string Shown(absl::string_view name) { return absl::StrCat("\"", ShownText(name, 80), "\""); }

absl::Status CheckKeys(const json& object, std::initializer_list<absl::string_view> known) {
  for (const auto& item : object.items()) {
    if (std::ranges::find(known, item.key()) == known.end())
      return Wrong(absl::StrCat("has an unknown key ", Shown(item.key())));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> ParseShape(const json& tensor) {
  const auto shape = tensor.find("shape");
  if (shape == tensor.end() || !shape->is_array())
    return Wrong("shape: is missing or no list of dimensions");
  std::vector<int64_t> dimensions;
  for (const json& dimension : *shape) {
    if (!dimension.is_number_unsigned() ||
        dimension.get<uint64_t>() > static_cast<uint64_t>(kMaxDimension)) {
      return Wrong(
          absl::StrCat("shape: a dimension is not a whole number of 1 to ", kMaxDimension));
    }
    dimensions.push_back(dimension.get<int64_t>());
  }
  return dimensions;
}

absl::StatusOr<InitialValues> ParseInitial(const json& tensor) {
  ConfigReader reader(tensor, "");
  const std::string kind = reader.String("init", "");
  const double deviation = reader.Number("std", 1e-12, 10, kDefaultDeviation);
  DISTRO_RETURN_IF_ERROR(reader.status());
  if (kind == "normal") return InitialValues{.deviation = static_cast<float>(deviation)};
  if (kind != "ones" && kind != "zeros")
    return Wrong("init: is not \"normal\", \"ones\" or \"zeros\"");
  if (tensor.contains("std")) return Wrong("std: belongs to \"init\": \"normal\" alone");
  return InitialValues{.constant = kind == "ones" ? 1.0f : 0.0f};
}

struct Tensor {
  TensorSpec spec;
  InitialValues initial;
};

absl::StatusOr<Tensor> ParseTensor(const json& value) {
  if (!value.is_object()) return Wrong("is not an object");
  const auto name = value.find("name");
  if (name == value.end() || !name->is_string()) return Wrong("name: is missing or no text");
  Tensor tensor;
  tensor.spec.name = name->get<std::string>();
  const auto parse = [&]() -> absl::Status {
    DISTRO_RETURN_IF_ERROR(CheckKeys(value, {"name", "shape", "init", "std"}));
    DISTRO_ASSIGN_OR_RETURN(tensor.spec.shape, ParseShape(value));
    DISTRO_ASSIGN_OR_RETURN(tensor.initial, ParseInitial(value));
    return absl::OkStatus();
  };
  DISTRO_RETURN_IF_ERROR(Annotate(parse(), Shown(tensor.spec.name)));
  return tensor;
}

// Checked first, because a newer version may give the keys another meaning.
absl::Status CheckVersion(const json& value) {
  if (!value.is_object() || !value.contains("format") || value["format"] != "distro-tensors" ||
      !value.contains("version")) {
    return Wrong(
        "is not a manifest of tensors: it needs \"format\": \"distro-tensors\" and a \"version\"");
  }
  if (value["version"] == kVersion) return absl::OkStatus();
  return Wrong(absl::StrCat("version: this program reads ", kVersion, " only"));
}

}  // namespace

absl::StatusOr<TensorManifest> ParseTensorManifest(absl::string_view text) {
  DISTRO_ASSIGN_OR_RETURN(const json value, ParseJson(text));
  DISTRO_RETURN_IF_ERROR(CheckVersion(value));
  DISTRO_RETURN_IF_ERROR(CheckKeys(value, {"format", "version", "tensors"}));
  const auto listed = value.find("tensors");
  if (listed == value.end() || !listed->is_array()) return Wrong("tensors: is missing or no list");
  std::vector<Tensor> tensors;
  for (const json& one : *listed) {
    absl::StatusOr<Tensor> tensor = ParseTensor(one);
    if (!tensor.ok())
      return Annotate(tensor.status(), absl::StrCat("tensors[", tensors.size(), "]"));
    tensors.push_back(*std::move(tensor));
  }
  std::ranges::sort(tensors, {}, [](const Tensor& tensor) { return tensor.spec.name; });
  std::vector<TensorSpec> specs;
  std::vector<InitialValues> initial;
  for (Tensor& tensor : tensors) {
    specs.push_back(std::move(tensor.spec));
    initial.push_back(tensor.initial);
  }
  DISTRO_ASSIGN_OR_RETURN(Manifest manifest, Manifest::Create(std::move(specs)));
  return TensorManifest{std::move(manifest), std::move(initial)};
}

void InitTensors(const TensorManifest& tensors, uint64_t seed, TensorBuffer* out) {
  for (int i = 0; i < out->tensors(); ++i) {
    FillInitial(tensors.manifest.tensors()[i].name, tensors.initial[i], seed, out->tensor(i));
  }
}

}  // namespace distro
