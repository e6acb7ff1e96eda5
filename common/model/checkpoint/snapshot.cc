#include "common/model/checkpoint/snapshot.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"

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

std::vector<FloatTensor> FloatTensorsOf(const Layout& layout, const TensorPieces& tensors) {
  std::vector<FloatTensor> list;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorSpec& spec = layout.manifest().tensors()[i];
    list.push_back({.name = spec.name,
                    .shape = spec.shape,
                    .values = tensors[i][0],
                    .rest = {tensors[i].begin() + 1, tensors[i].end()}});
  }
  return list;
}

absl::Status WriteSnapshot(const std::string& path, const Layout& layout,
                           const TensorPieces& tensors,
                           const std::map<std::string, std::string>& metadata) {
  return WriteSafetensors(path, FloatTensorsOf(layout, tensors), metadata);
}

absl::Status CheckSnapshotSize(uint64_t size_bytes, int64_t elements) {
  const uint64_t least = sizeof(float) * static_cast<uint64_t>(elements);
  const uint64_t most = least + sizeof(uint64_t) + kMaxSafetensorsHeaderBytes;
  if (size_bytes >= least && size_bytes <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a snapshot of ", size_bytes, " bytes is not one of the run's model, whose ",
                   elements, " parameters need ", least, " to ", most));
}

absl::StatusOr<Manifest> SnapshotManifest(const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  absl::StatusOr<Manifest> manifest = ManifestOf(file);
  if (!manifest.ok()) return Annotate(manifest.status(), path);
  return manifest;
}

absl::StatusOr<SnapshotFile> SnapshotFile::Open(const std::string& path, const Layout& layout) {
  DISTRO_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path));
  absl::StatusOr<Manifest> manifest = ManifestOf(file);
  if (!manifest.ok()) return Annotate(manifest.status(), path);
  DISTRO_RETURN_IF_ERROR(Annotate(CheckSameTensors(layout.manifest(), *manifest), path));
  return SnapshotFile(std::move(file));
}

absl::Status ReadSnapshot(const std::string& path, const Layout& layout, TensorBuffer* out) {
  DISTRO_ASSIGN_OR_RETURN(const SnapshotFile file, SnapshotFile::Open(path, layout));
  for (int i = 0; i < out->tensors(); ++i) {
    std::memcpy(out->tensor(i).data(), file.tensor(i).data(), file.tensor(i).size());
  }
  return absl::OkStatus();
}

}  // namespace distro
