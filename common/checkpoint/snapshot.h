// A snapshot: the parameters before one round, as a single canonical safetensors file with every
// tensor of the manifest in f32 and nothing else. The same parameters and metadata always give the
// same bytes. The file of a peer and one of our own disk are read alike: InvalidArgument says what
// is wrong, and the caller knows whose fault that is.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/safetensors.h"
#include "common/layout/layout.h"
#include "common/layout/manifest.h"
#include "common/layout/tensor_buffer.h"

namespace distro {

// Durable and atomic as WriteSafetensors. `metadata` is free text for readers, such as {"round",
// "42"}. Requires tensors of `layout`.
absl::Status WriteSnapshot(const std::string& path, const Layout& layout,
                           const TensorPieces& tensors,
                           const std::map<std::string, std::string>& metadata);
inline absl::Status WriteSnapshot(const std::string& path, const Layout& layout,
                                  const TensorBuffer& tensors,
                                  const std::map<std::string, std::string>& metadata) {
  return WriteSnapshot(path, layout, PiecesOf(tensors), metadata);
}

// What the file holds. InvalidArgument: damaged, not all f32, or not a manifest.
absl::StatusOr<Manifest> SnapshotManifest(const std::string& path);

// A snapshot of a layout, mapped: for readers that take parts of it.
class SnapshotFile {
 public:
  // InvalidArgument: as above, or the tensors are not those of the layout; names the first that
  // differs.
  static absl::StatusOr<SnapshotFile> Open(const std::string& path, const Layout& layout);

  // f32 little-endian, row-major, of any alignment; lives as long as the object, also when it
  // moves.
  absl::string_view tensor(int i) const { return file_.tensors()[i].bytes; }

 private:
  explicit SnapshotFile(SafetensorsFile file) : file_(std::move(file)) {}
  SafetensorsFile file_;
};

// InvalidArgument: as above, or the tensors are not those of the layout; names the first that
// differs. Requires a buffer of `layout`, which is untouched when the result is an error.
absl::Status ReadSnapshot(const std::string& path, const Layout& layout, TensorBuffer* out);

}  // namespace distro
