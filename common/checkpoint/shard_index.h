// model.safetensors.index.json: which file of a sharded checkpoint holds which tensor. Part of
// hf_folder.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/safetensors.h"

namespace distro {

inline constexpr absl::string_view kShardIndexName = "model.safetensors.index.json";

// The "weight_map": tensor -> file. InvalidArgument: not such an object, no tensor, or a file name
// that is not a plain
// "*.safetensors" in the same folder.
absl::StatusOr<std::map<std::string, std::string>> ParseShardIndex(absl::string_view json);

// Every file of the folder's index, once. InvalidArgument names file and tensor: one that the index
// places in a file that lacks it, or that a file holds and the index does not place there (so none
// is in two files).
absl::StatusOr<std::vector<SafetensorsFile>> OpenShards(const std::string& folder);

}  // namespace distro
