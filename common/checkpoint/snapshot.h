// A snapshot: the parameters before one round, as a single canonical safetensors file with every
// tensor of the manifest in f32 and nothing else. The same parameters and metadata always give the
// same bytes. The file of a peer and one of our own disk are read alike: InvalidArgument says what
// is wrong, and the caller knows whose fault that is.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/layout.h"
#include "common/layout/manifest.h"
#include "common/layout/tensor_buffer.h"

namespace distro {

// Durable and atomic as WriteSafetensors. `metadata` is free text for readers, such as {"round",
// "42"}. Requires tensors of `layout`.
absl::Status WriteSnapshot(const std::string& path, const Layout& layout,
                           const TensorBuffer& tensors,
                           const std::map<std::string, std::string>& metadata);

// What the file holds. InvalidArgument: damaged, not all f32, or not a manifest.
absl::StatusOr<Manifest> SnapshotManifest(const std::string& path);

// InvalidArgument: as above, or the tensors are not those of the layout; names the first that
// differs. Requires a buffer of `layout`, which is untouched when the result is an error.
absl::Status ReadSnapshot(const std::string& path, const Layout& layout, TensorBuffer* out);

}  // namespace distro
