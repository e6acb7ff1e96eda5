// A checkpoint folder in the Hugging Face layout (docs/checkpoints.md): config.json beside
// model.safetensors, or beside model.safetensors.index.json and the files that it names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/safetensors.h"
#include "common/layout/layout.h"
#include "common/layout/manifest.h"
#include "common/layout/tensor_buffer.h"

namespace distro {

// An opened folder; its files are mapped. Immutable, thread-safe.
class CheckpointFolder {
 public:
  const std::string& config_json() const { return config_json_; }
  // All trainable tensors: those of the files, except "*.rotary_emb.inv_freq", a constant that old
  // files carry.
  const Manifest& manifest() const { return manifest_; }

  // Widens every tensor to f32. InvalidArgument: the layout has another manifest; names the first
  // tensor that differs. Requires a buffer of `layout`.
  absl::Status ReadInto(const Layout& layout, TensorBuffer* out) const;

 private:
  friend absl::StatusOr<CheckpointFolder> OpenCheckpointFolder(const std::string& folder);
  CheckpointFolder(std::string config_json, std::vector<SafetensorsFile> files, Manifest manifest)
      : config_json_(std::move(config_json)),
        files_(std::move(files)),
        manifest_(std::move(manifest)) {}

  std::string config_json_;
  std::vector<SafetensorsFile> files_;  // no tensor is in two of them
  Manifest manifest_;
};

// model.safetensors wins over an index, as in transformers. config.json must be a JSON object; what
// it says about an architecture is not looked at. NotFound: a file is missing. InvalidArgument
// names file and tensor: a damaged file or index, a file name that leaves the folder, a tensor that
// is missing, in two files, not listed or of a dtype that cannot be trained, a tensor that no
// manifest may hold.
absl::StatusOr<CheckpointFolder> OpenCheckpointFolder(const std::string& folder);

// Writes config.json and model.safetensors (f32, canonical). "dtype" and "torch_dtype" become
// "float32" where `config_json` has them, so that the weights are opened as what they are; all else
// in it stays. A folder that does not exist appears whole or not at all: it is written as
// "<folder>.tmp", which is removed first when a crash has left one, then renamed. In one that
// exists, the two files are replaced one after the other, each atomically. InvalidArgument:
// config_json is not a JSON object. Requires tensors of `layout`.
absl::Status WriteCheckpointFolder(const std::string& folder, const std::string& config_json,
                                   const Layout& layout, const TensorPieces& tensors);
inline absl::Status WriteCheckpointFolder(const std::string& folder, const std::string& config_json,
                                          const Layout& layout, const TensorBuffer& tensors) {
  return WriteCheckpointFolder(folder, config_json, layout, PiecesOf(tensors));
}

}  // namespace distro
