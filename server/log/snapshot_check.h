// Checks a snapshot file before a run starts or continues from it. Blocking, thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/checksum.h"
#include "common/layout/layout.h"
#include "distro/v1/run.pb.h"

namespace distro::server {

// The layout of a run of this configuration that begins with the snapshot; reads its head only.
// InvalidArgument: not a snapshot.
absl::StatusOr<std::shared_ptr<const Layout>> LayoutOfSnapshot(const std::string& path,
                                                               const v1::RunConfig& config);

// The state hash of its parameters, which are all read into memory. InvalidArgument: other tensors
// than those of the layout, or one with a value that is not finite.
absl::StatusOr<uint64_t> CheckedStateHash(const std::string& path, const Layout& layout);

// A refusal as the upload's sender reads it: "snapshot" in the place of `path`, our file, which it
// does not know. Any other status as it is.
absl::Status AsUpload(const absl::Status& status, const std::string& path);

// The 32 bytes as messages carry them.
std::string DigestBytes(const Sha256Digest& digest);

}  // namespace distro::server
