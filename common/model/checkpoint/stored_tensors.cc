#include "common/model/checkpoint/stored_tensors.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/folder.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/model/checkpoint/shard_index.h"

namespace distro {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kHead = "lm_head.weight";

bool IsOfPyTorch(absl::string_view name) {
  return absl::EndsWith(name, ".bin") || absl::EndsWith(name, ".pt") ||
         absl::EndsWith(name, ".pth");
}

// The remedy for a folder without weights, by the first name that says what it holds instead.
std::string WhatIsThere(const std::string& folder) {
  std::vector<std::string> names = NamesIn(folder).value_or(std::vector<std::string>());
  for (const std::string& name : names) {
    const fs::path below = fs::path(folder) / name;
    std::error_code ignored;
    if (fs::exists(below / "model.safetensors", ignored)) {
      return absl::StrCat("it holds folders of checkpoints: give one of them, such as ",
                          below.string());
    }
  }
  std::ranges::sort(names);
  for (const std::string& name : names) {
    if (name == "adapter_model.safetensors")
      return "it holds an adapter (LoRA) alone: save the whole model after merge_and_unload()";
    if (absl::StartsWith(name, "model-") && absl::EndsWith(name, ".safetensors"))
      return absl::StrCat("it holds shards (", name, "): copy their index, too");
    if (absl::EndsWith(name, ".safetensors"))
      return absl::StrCat("if ", name, " is the whole model, name it model.safetensors");
    if (absl::EndsWith(name, ".gguf"))
      return absl::StrCat(name, " is of llama.cpp: give the model's safetensors files");
    if (IsOfPyTorch(name)) {
      return absl::StrCat("it holds ", name,
                          ": load it in PyTorch and save the model with safe_serialization=True");
    }
  }
  return "save the model with safe_serialization=True";
}

absl::StatusOr<std::vector<SafetensorsFile>> OpenFiles(const std::string& path) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  const std::string file_path = is_folder ? absl::StrCat(path, "/model.safetensors") : path;
  if (!is_folder || fs::exists(file_path, ignored)) {
    DISTRO_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(file_path));
    std::vector<SafetensorsFile> files;
    files.push_back(std::move(file));
    return files;
  }
  if (fs::exists(absl::StrCat(path, "/", kShardIndexName), ignored)) return OpenShards(path);
  return absl::NotFoundError(absl::StrCat(path, ": has neither model.safetensors nor ",
                                          kShardIndexName, "; ", WhatIsThere(path)));
}

constexpr absl::string_view kQuantised = " (a quantised model: give the one that it was made of)";

// A constant; transformers before 4.31 stored it.
bool IsConstant(absl::string_view name) { return absl::EndsWith(name, ".rotary_emb.inv_freq"); }

const SafetensorsTensor* FindIn(const std::vector<SafetensorsFile>& files, absl::string_view name) {
  for (const SafetensorsFile& file : files) {
    if (const SafetensorsTensor* tensor = file.Find(name); tensor != nullptr) return tensor;
  }
  return nullptr;
}

// The tied head is the embedding; some programs store it a second time.
bool IsCopy(const SafetensorsTensor& head, const SafetensorsTensor& other) {
  return other.name != head.name && other.dtype == head.dtype && other.shape == head.shape &&
         other.bytes == head.bytes;
}

bool HasCopyOfHead(const std::vector<SafetensorsFile>& files) {
  const SafetensorsTensor* const head = FindIn(files, kHead);
  if (head == nullptr) return false;
  return std::ranges::any_of(files, [&](const SafetensorsFile& file) {
    return std::ranges::any_of(
        file.tensors(), [&](const SafetensorsTensor& other) { return IsCopy(*head, other); });
  });
}

absl::StatusOr<Manifest> ManifestOf(const std::vector<SafetensorsFile>& files, bool without_head) {
  std::vector<TensorSpec> specs;
  for (const SafetensorsFile& file : files) {
    for (const SafetensorsTensor& tensor : file.tensors()) {
      if (IsConstant(tensor.name) || (without_head && tensor.name == kHead)) continue;
      if (!IsConvertibleToFloat(tensor.dtype)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "tensor ", tensor.name, ": dtype ", tensor.dtype,
            " cannot be trained; use F32, BF16 or F16", tensor.dtype == "F64" ? "" : kQuantised));
      }
      specs.push_back({tensor.name, tensor.shape});
    }
  }
  return Manifest::Create(std::move(specs));
}

}  // namespace

absl::StatusOr<StoredTensors> OpenStoredTensors(const std::string& path, bool tied_head) {
  DISTRO_ASSIGN_OR_RETURN(std::vector<SafetensorsFile> files, OpenFiles(path));
  absl::StatusOr<Manifest> manifest = ManifestOf(files, tied_head && HasCopyOfHead(files));
  if (!manifest.ok()) return Annotate(manifest.status(), path);
  return StoredTensors(std::move(files), *std::move(manifest));
}

absl::Status StoredTensors::ReadInto(const Layout& layout, TensorBuffer* out) const {
  DISTRO_RETURN_IF_ERROR(CheckSameTensors(layout.manifest(), manifest_));
  for (int i = 0; i < out->tensors(); ++i) {
    const SafetensorsTensor* tensor = FindIn(files_, manifest_.tensors()[i].name);
    DISTRO_RETURN_IF_ERROR(CopyToFloat(*tensor, out->tensor(i)));
  }
  return absl::OkStatus();
}

}  // namespace distro
