// The trainable tensors in safetensors files: one file, or a folder with model.safetensors or with
// model.safetensors.index.json and the files that it lists (docs/checkpoints.md).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/checkpoint/safetensors.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/manifest.h"
#include "common/model/layout/tensor_buffer.h"

namespace distro {

// Opened, mapped files. Immutable, thread-safe.
class StoredTensors {
 public:
  // All tensors of the files except "*.rotary_emb.inv_freq", a constant in files of old
  // transformers versions, and the copy of a tied head.
  const Manifest& manifest() const { return manifest_; }

  // Widens every tensor to f32. InvalidArgument: the layout has another manifest; names the first
  // tensor that differs. Requires a buffer of `layout`.
  absl::Status ReadInto(const Layout& layout, TensorBuffer* out) const;

 private:
  friend absl::StatusOr<StoredTensors> OpenStoredTensors(const std::string& path, bool tied_head);
  StoredTensors(std::vector<SafetensorsFile> files, Manifest manifest)
      : files_(std::move(files)), manifest_(std::move(manifest)) {}

  std::vector<SafetensorsFile> files_;  // no tensor is in two of them
  Manifest manifest_;
};

// `path` is a file or a folder. In a folder model.safetensors has precedence over an index, as in
// transformers. With `tied_head` (tie_word_embeddings in config.json) an lm_head.weight that equals
// another tensor byte by byte is left out. NotFound: a file is missing; says what is there instead.
// InvalidArgument names file and tensor: a damaged file or index; a file name outside the folder; a
// tensor that is missing, in two files, not listed, of a dtype that cannot be trained, or not
// allowed in a manifest.
absl::StatusOr<StoredTensors> OpenStoredTensors(const std::string& path, bool tied_head = false);

}  // namespace distro
