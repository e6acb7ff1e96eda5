// Converts a checkpoint folder to the file with which a run begins: one snapshot of f32 tensors.
// The same folder gives the same bytes on every machine. Thread-safe, blocking.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/checksum.h"
#include "common/model/checkpoint/companions.h"

namespace distro {

struct InitialSnapshot {
  std::string model_config_json;  // the folder's config.json
  uint64_t bytes = 0;             // size of the file
  Sha256Digest sha256{};
  Companions companions;  // of the folder
};

// Writes the snapshot to `out_path`, durably and atomically. Holds all parameters in memory
// meanwhile. NotFound, InvalidArgument: as OpenCheckpointFolder, ReadCompanions and CheckFinite.
absl::StatusOr<InitialSnapshot> PrepareInitialSnapshot(const std::string& checkpoint_dir,
                                                       const std::string& out_path);

// SHA-256 of a file.
absl::StatusOr<Sha256Digest> Sha256OfFile(const std::string& path);

}  // namespace distro
