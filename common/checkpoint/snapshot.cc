#include "common/checkpoint/snapshot.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/checkpoint/safetensors.h"

namespace distro {
namespace {

absl::StatusOr<Manifest> ManifestOf(const SafetensorsFile& file) {
  std::vector<TensorSpec> specs;
  for (const SafetensorsTensor& tensor : file.tensors()) {
    if (tensor.dtype != "F32") {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name, ": dtype ",
                                                     tensor.dtype,
                                                     " in a snapshot, which holds F32 only"));
    }
    specs.push_back({tensor.name, tensor.shape});
  }
  return Manifest::Create(std::move(specs));
}

}  // namespace

absl::Status WriteSnapshot(const std::string& path, const Layout& layout,
                           const TensorBuffer& tensors,
                           const std::map<std::string, std::string>& metadata) {
  std::vector<FloatTensor> list;
  for (int i = 0; i < tensors.tensors(); ++i) {
    const TensorSpec& spec = layout.manifest().tensors()[i];
    list.push_back({.name = spec.name, .shape = spec.shape, .values = tensors.tensor(i)});
  }
  return WriteSafetensors(path, std::move(list), metadata);
}

absl::StatusOr<Manifest> SnapshotManifest(const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  absl::StatusOr<Manifest> manifest = ManifestOf(file);
  if (!manifest.ok()) return Annotate(manifest.status(), path);
  return manifest;
}

absl::Status ReadSnapshot(const std::string& path, const Layout& layout, TensorBuffer* out) {
  DISTRO_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  absl::StatusOr<Manifest> manifest = ManifestOf(file);
  if (!manifest.ok()) return Annotate(manifest.status(), path);
  DISTRO_RETURN_IF_ERROR(Annotate(CheckSameTensors(layout.manifest(), *manifest), path));
  for (int i = 0; i < out->tensors(); ++i) {
    DISTRO_RETURN_IF_ERROR(Annotate(CopyToFloat(file.tensors()[i], out->tensor(i)), path));
  }
  return absl::OkStatus();
}

}  // namespace distro
