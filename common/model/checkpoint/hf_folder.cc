#include "common/model/checkpoint/hf_folder.h"

#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/foreign_file.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/model/checkpoint/snapshot.h"

namespace distro {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kMaxConfigBytes = 1 << 20;
constexpr absl::string_view kModelName = "model.safetensors";
constexpr absl::string_view kConfigName = "config.json";
constexpr absl::string_view kAdapterConfigName = "adapter_config.json";
constexpr absl::string_view kAdapterModelName = "adapter_model.safetensors";
constexpr absl::string_view kAdapterName = ".default.";

std::string PathOf(const std::string& folder, absl::string_view name) {
  return absl::StrCat(folder, "/", name);
}

absl::StatusOr<json> ParseConfig(const std::string& text) {
  absl::StatusOr<json> config = ParseJson(text);
  if (!config.ok()) return Annotate(config.status(), kConfigName);
  if (!config->is_object()) return absl::InvalidArgumentError("config.json: is not a JSON object");
  const bool answer = config->size() == 1 && config->contains("error");
  if (answer) return absl::InvalidArgumentError(absl::StrCat("config.json: ", ForeignFormat(text)));
  return config;
}

// A path that is a file, or the folder above the checkpoints, is a usual mistake.
absl::Status CheckFolder(const std::string& folder) {
  std::error_code ignored;
  if (!fs::exists(folder, ignored) || fs::exists(PathOf(folder, kConfigName), ignored))
    return absl::OkStatus();
  if (!fs::is_directory(folder, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat(
        folder, ": is a file: give the folder that holds ", kConfigName, " and ", kModelName));
  }
  for (const std::string& name : NamesIn(folder).value_or(std::vector<std::string>())) {
    const std::string below = fs::path(folder) / name;
    if (!fs::exists(PathOf(below, kConfigName), ignored)) continue;
    return absl::NotFoundError(absl::StrCat(folder, ": has no ", kConfigName, ", but ", below,
                                            " has: give such a folder"));
  }
  return absl::NotFoundError(
      absl::StrCat(folder, ": has no ", kConfigName, ": copy it beside the weights"));
}

absl::StatusOr<std::string> ConfigOfFloatWeights(const std::string& config_json) {
  DISTRO_ASSIGN_OR_RETURN(json config, ParseConfig(config_json));
  for (const char* key : {"dtype", "torch_dtype"}) {
    if (config.contains(key)) config[key] = "float32";
  }
  return WriteJson(config);
}

// As peft writes an adapter: its names are without that of the adapter, which a run has in them.
absl::Status WriteAdapter(const std::string& folder, const Layout& layout,
                          const TensorPieces& tensors) {
  std::vector<FloatTensor> list = FloatTensorsOf(layout, tensors);
  for (FloatTensor& tensor : list)
    tensor.name = absl::StrReplaceAll(tensor.name, {{kAdapterName, "."}});
  return WriteSafetensors(PathOf(folder, kAdapterModelName), std::move(list), {});
}

absl::Status WriteFiles(const std::string& folder, const std::string& config, const Layout& layout,
                        const TensorPieces& tensors, const Companions& companions) {
  DISTRO_RETURN_IF_ERROR(WriteCompanions(folder, companions));
  const bool adapter = std::ranges::any_of(
      companions, [](const Companion& one) { return one.name == kAdapterConfigName; });
  if (adapter) return WriteAdapter(folder, layout, tensors);
  DISTRO_RETURN_IF_ERROR(WriteSnapshot(PathOf(folder, kModelName), layout, tensors, {}));
  return WriteFileAtomically(PathOf(folder, kConfigName), config);
}

// Removes a "/" at the end, so that "<folder>.tmp" is beside the folder.
std::string Normalised(const std::string& folder) {
  const fs::path path = fs::path(folder).lexically_normal();
  return path.has_filename() ? path.string() : path.parent_path().string();
}

}  // namespace

bool TiesHead(const std::string& config_json) {
  const absl::StatusOr<json> config = ParseConfig(config_json);
  return config.ok() && config->value("tie_word_embeddings", json()) == json(true);
}

absl::StatusOr<CheckpointFolder> OpenCheckpointFolder(const std::string& folder) {
  DISTRO_RETURN_IF_ERROR(CheckFolder(folder));
  DISTRO_ASSIGN_OR_RETURN(std::string config,
                          ReadTextFile(PathOf(folder, kConfigName), kMaxConfigBytes));
  DISTRO_RETURN_IF_ERROR(Annotate(ParseConfig(config).status(), folder));
  DISTRO_ASSIGN_OR_RETURN(StoredTensors tensors, OpenStoredTensors(folder, TiesHead(config)));
  return CheckpointFolder(std::move(config), std::move(tensors));
}

absl::Status WriteCheckpointFolder(const std::string& folder, const std::string& config_json,
                                   const Layout& layout, const TensorPieces& tensors,
                                   const Companions& companions) {
  DISTRO_ASSIGN_OR_RETURN(const std::string config, ConfigOfFloatWeights(config_json));
  const std::string target = Normalised(folder),
                    temporary = absl::StrCat(target, kHalfWrittenFolder);
  std::error_code error;
  if (fs::exists(target, error)) return WriteFiles(target, config, layout, tensors, companions);
  fs::remove_all(temporary, error);
  if (error) return ErrnoToStatus(error.value(), "remove", temporary);
  auto remove = absl::MakeCleanup([&temporary] {  // what is half written would keep a disk full
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
  });
  DISTRO_RETURN_IF_ERROR(CreateFolders(temporary));
  DISTRO_RETURN_IF_ERROR(WriteFiles(temporary, config, layout, tensors, companions));
  if (rename(temporary.c_str(), target.c_str()) != 0)
    return ErrnoToStatus(errno, "rename to", target);
  std::move(remove).Cancel();
  return SyncFolder(FolderOf(target));
}

}  // namespace distro
