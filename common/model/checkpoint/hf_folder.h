// A checkpoint folder in the Hugging Face layout (docs/checkpoints.md): config.json beside
// model.safetensors, or beside model.safetensors.index.json and the files that it names.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/checkpoint/companions.h"
#include "common/model/checkpoint/stored_tensors.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/manifest.h"
#include "common/model/layout/tensor_buffer.h"

namespace distro {

// An opened folder; its files are mapped. Immutable, thread-safe.
class CheckpointFolder {
 public:
  const std::string& config_json() const { return config_json_; }
  const Manifest& manifest() const { return tensors_.manifest(); }

  // As StoredTensors::ReadInto.
  absl::Status ReadInto(const Layout& layout, TensorBuffer* out) const {
    return tensors_.ReadInto(layout, out);
  }

 private:
  friend absl::StatusOr<CheckpointFolder> OpenCheckpointFolder(const std::string& folder);
  CheckpointFolder(std::string config_json, StoredTensors tensors)
      : config_json_(std::move(config_json)), tensors_(std::move(tensors)) {}

  std::string config_json_;
  StoredTensors tensors_;
};

// Whether this config.json says that the head is the embedding (tie_word_embeddings).
bool TiesHead(const std::string& config_json);

// Opens a folder. Its config.json must be a JSON object; the architecture in it is not checked.
// NotFound, InvalidArgument: as OpenStoredTensors, or of config.json.
absl::StatusOr<CheckpointFolder> OpenCheckpointFolder(const std::string& folder);

// A new folder has this behind its name until it is whole.
inline constexpr absl::string_view kHalfWrittenFolder = ".tmp";

// Writes config.json, model.safetensors (f32, canonical) and the companions. With the companion
// adapter_config.json the tensors are an adapter of peft, named "default" in their names: then the
// folder has adapter_model.safetensors, with peft's names, in the place of the other two, with
// which it would open as a whole model. If `config_json` has "dtype" or "torch_dtype", they become
// "float32", so that readers load the weights with the right type; everything else in it stays. A
// new folder appears whole or not at all: it is written as "<folder>.tmp" (one left by a crash is
// removed first), then renamed; after an error nothing of it stays. In an existing folder these
// files are replaced one by one, each atomically, and other files stay. InvalidArgument:
// config_json is not a JSON object. Requires tensors of `layout`.
absl::Status WriteCheckpointFolder(const std::string& folder, const std::string& config_json,
                                   const Layout& layout, const TensorPieces& tensors,
                                   const Companions& companions = {});
inline absl::Status WriteCheckpointFolder(const std::string& folder, const std::string& config_json,
                                          const Layout& layout, const TensorBuffer& tensors,
                                          const Companions& companions = {}) {
  return WriteCheckpointFolder(folder, config_json, layout, PiecesOf(tensors), companions);
}

}  // namespace distro
