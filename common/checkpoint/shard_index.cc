#include "common/checkpoint/shard_index.h"

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/utf8.h"

namespace distro {
namespace {

constexpr uint64_t kMaxIndexBytes = 16 << 20;

absl::Status IndexError(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(kShardIndexName, ": ", what));
}

absl::Status CheckFileName(absl::string_view tensor, absl::string_view file) {
  const bool plain = absl::EndsWith(file, ".safetensors") &&
                     file.find('/') == absl::string_view::npos &&
                     file.find('\0') == absl::string_view::npos && file[0] != '.';
  if (plain) return absl::OkStatus();
  return IndexError(absl::StrCat("tensor ", tensor, ": ", ShownText(file, 200),
                                 " is not the name of a .safetensors file in the folder"));
}

// Checks both directions: the file has all tensors that the index places in it, and no others.
absl::Status CheckShard(const SafetensorsFile& file, const std::string& name,
                        const std::map<std::string, std::string>& index) {
  for (const auto& [tensor, shard] : index) {
    if (shard == name && file.Find(tensor) == nullptr) {
      return IndexError(absl::StrCat("tensor ", tensor, " is missing in ", name));
    }
  }
  for (const SafetensorsTensor& tensor : file.tensors()) {
    const auto listed = index.find(tensor.name);
    if (listed == index.end())
      return IndexError(absl::StrCat("tensor ", tensor.name, " of ", name, " is not listed"));
    if (listed->second != name) {
      return IndexError(absl::StrCat("tensor ", tensor.name, " is in ", name, ", the index says ",
                                     listed->second));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> ParseShardIndex(absl::string_view text) {
  const absl::StatusOr<nlohmann::json> index = ParseJson(text);
  if (!index.ok()) return Annotate(index.status(), kShardIndexName);
  const auto map = index->is_object() ? index->find("weight_map") : index->end();
  if (map == index->end() || !map->is_object() || map->empty()) {
    return IndexError("needs an object \"weight_map\" that names a file for every tensor");
  }
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string())
      return IndexError(absl::StrCat("tensor ", tensor, ": its file is not a string"));
    DISTRO_RETURN_IF_ERROR(CheckFileName(tensor, file.get_ref<const std::string&>()));
    files[tensor] = file.get<std::string>();
  }
  return files;
}

absl::StatusOr<std::vector<SafetensorsFile>> OpenShards(const std::string& folder) {
  DISTRO_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(absl::StrCat(folder, "/", kShardIndexName), kMaxIndexBytes));
  absl::StatusOr<std::map<std::string, std::string>> index = ParseShardIndex(text);
  if (!index.ok()) return Annotate(index.status(), folder);
  std::set<std::string> names;
  for (const auto& [tensor, name] : *index) names.insert(name);
  std::vector<SafetensorsFile> files;
  for (const std::string& name : names) {
    DISTRO_ASSIGN_OR_RETURN(SafetensorsFile file,
                            SafetensorsFile::Open(absl::StrCat(folder, "/", name)));
    DISTRO_RETURN_IF_ERROR(Annotate(CheckShard(file, name, *index), folder));
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace distro
