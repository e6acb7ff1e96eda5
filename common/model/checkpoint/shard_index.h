// model.safetensors.index.json: lists the file of each tensor in a sharded checkpoint. Part of
// hf_folder.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/checkpoint/safetensors.h"

namespace distro {

inline constexpr absl::string_view kShardIndexName = "model.safetensors.index.json";

// Parses "weight_map": tensor -> file. InvalidArgument: not such an object, no tensor, or a file
// name that is not a plain "*.safetensors" of the same folder.
absl::StatusOr<std::map<std::string, std::string>> ParseShardIndex(absl::string_view json);

// Opens every file of the folder's index, once. InvalidArgument names file and tensor: a tensor is
// not in the file that the index gives, or a file has one that the index does not place there. So
// no tensor is in two files.
absl::StatusOr<std::vector<SafetensorsFile>> OpenShards(const std::string& folder);

}  // namespace distro
