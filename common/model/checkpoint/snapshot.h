// A snapshot: the parameters before a round, as one canonical safetensors file with every tensor of
// the manifest in f32 and nothing else. The same parameters and metadata give the same bytes. A
// peer's file and a local one are read alike: InvalidArgument says what is wrong, and the caller
// knows where the file came from.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/checkpoint/safetensors.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/manifest.h"
#include "common/model/layout/tensor_buffer.h"

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

// The tensors of `layout` for WriteSafetensors; borrowed.
std::vector<FloatTensor> FloatTensorsOf(const Layout& layout, const TensorPieces& tensors);

// Whether a file of so many bytes, by a peer's word, can be a snapshot of a model of so many
// elements: check it before the file is fetched. InvalidArgument.
absl::Status CheckSnapshotSize(uint64_t size_bytes, int64_t elements);

// The tensors in the file. InvalidArgument: damaged, not all f32, or not a valid manifest.
absl::StatusOr<Manifest> SnapshotManifest(const std::string& path);

// A mapped snapshot of a layout, for readers that need parts of it.
class SnapshotFile {
 public:
  // InvalidArgument: as above, or the tensors differ from the layout's; names the first that does.
  static absl::StatusOr<SnapshotFile> Open(const std::string& path, const Layout& layout);

  // f32 little-endian, row-major, unaligned; valid as long as the object, even when it is moved.
  absl::string_view tensor(int i) const { return file_.tensors()[i].bytes; }

 private:
  explicit SnapshotFile(SafetensorsFile file) : file_(std::move(file)) {}
  SafetensorsFile file_;
};

// InvalidArgument: as above, or the tensors differ from the layout's; names the first that does.
// Requires a buffer of `layout`; it is unchanged after an error.
absl::Status ReadSnapshot(const std::string& path, const Layout& layout, TensorBuffer* out);

}  // namespace distro
