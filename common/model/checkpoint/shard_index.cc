#include "common/model/checkpoint/shard_index.h"

#include <filesystem>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/foreign_file.h"
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

absl::Status OtherShard(absl::string_view what) {
  return IndexError(
      absl::StrCat(what, ": index and shards are of two models; copy all of them from one"));
}

absl::Status CheckFileName(absl::string_view tensor, absl::string_view file) {
  const bool plain = absl::EndsWithIgnoreCase(file, ".safetensors") &&
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
      return OtherShard(absl::StrCat("tensor ", tensor, " is missing in ", name));
    }
  }
  for (const SafetensorsTensor& tensor : file.tensors()) {
    const auto listed = index.find(tensor.name);
    if (listed == index.end())
      return OtherShard(absl::StrCat("tensor ", tensor.name, " of ", name, " is not listed"));
    if (listed->second != name) {
      return OtherShard(absl::StrCat("tensor ", tensor.name, " is in ", name, ", the index says ",
                                     listed->second));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAllThere(const std::string& folder, const std::set<std::string>& names) {
  std::vector<std::string> missing;
  std::error_code ignored;
  for (const std::string& name : names) {
    if (!std::filesystem::exists(absl::StrCat(folder, "/", name), ignored)) missing.push_back(name);
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat(folder, ": ", kShardIndexName, " names ", names.size(), " files, and ",
                   missing.size(), " are not there: ", missing[0],
                   missing.size() > 1 ? ", ..." : "", ": copy or download them, too"));
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> ParseShardIndex(absl::string_view text) {
  const absl::StatusOr<nlohmann::json> index = ParseJson(text);
  if (!index.ok()) return Annotate(index.status(), kShardIndexName);
  const auto map = index->is_object() ? index->find("weight_map") : index->end();
  if (map == index->end() || !map->is_object() || map->empty()) {
    return ExplainForeign(
        IndexError("needs an object \"weight_map\" that names a file for every tensor"), text);
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
                          ReadTextFile(absl::StrCat(folder, "/", kShardIndexName), kMaxIndexBytes));
  absl::StatusOr<std::map<std::string, std::string>> index = ParseShardIndex(text);
  if (!index.ok()) return Annotate(index.status(), folder);
  std::set<std::string> names;
  for (const auto& [tensor, name] : *index) names.insert(name);
  DISTRO_RETURN_IF_ERROR(CheckAllThere(folder, names));
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
