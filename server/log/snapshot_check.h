// Checks a snapshot file before a run starts or continues from it. Blocking, thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/checksum.h"
#include "common/model/layout/layout.h"
#include "distro/v1/run.pb.h"

namespace distro::server {

// The layout of a run with this configuration that begins with the snapshot. Reads only its header.
// InvalidArgument: not a snapshot.
absl::StatusOr<std::shared_ptr<const Layout>> LayoutOfSnapshot(const std::string& path,
                                                               const v1::RunConfig& config);

// The state hash of the snapshot's parameters, which are all read into memory. InvalidArgument: its
// tensors are not the layout's, or a value is not finite.
absl::StatusOr<uint64_t> CheckedStateHash(const std::string& path, const Layout& layout);

// Converts a refusal for the sender of the upload: replaces `path`, which the sender does not know,
// by "snapshot". Other statuses do not change.
absl::Status AsUpload(const absl::Status& status, const std::string& path);

// The 32 bytes of a digest, as in messages.
std::string DigestBytes(const Sha256Digest& digest);

}  // namespace distro::server
