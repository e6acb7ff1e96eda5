#include "common/checkpoint/stored_tensors.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/checkpoint/shard_index.h"

namespace distro {
namespace {

namespace fs = std::filesystem;

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
                                          kShardIndexName,
                                          "; save the model with safe_serialization=True"));
}

// A constant; transformers before 4.31 stored it.
bool IsConstant(absl::string_view name) { return absl::EndsWith(name, ".rotary_emb.inv_freq"); }

absl::StatusOr<Manifest> ManifestOf(const std::vector<SafetensorsFile>& files) {
  std::vector<TensorSpec> specs;
  for (const SafetensorsFile& file : files) {
    for (const SafetensorsTensor& tensor : file.tensors()) {
      if (IsConstant(tensor.name)) continue;
      if (!IsConvertibleToFloat(tensor.dtype)) {
        return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name, ": dtype ",
                                                       tensor.dtype,
                                                       " cannot be trained; use F32, BF16 or F16"));
      }
      specs.push_back({tensor.name, tensor.shape});
    }
  }
  return Manifest::Create(std::move(specs));
}

const SafetensorsTensor* FindIn(const std::vector<SafetensorsFile>& files, absl::string_view name) {
  for (const SafetensorsFile& file : files) {
    if (const SafetensorsTensor* tensor = file.Find(name); tensor != nullptr) return tensor;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<StoredTensors> OpenStoredTensors(const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(std::vector<SafetensorsFile> files, OpenFiles(path));
  absl::StatusOr<Manifest> manifest = ManifestOf(files);
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
