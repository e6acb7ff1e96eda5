// The checkpoint folders that a program writes during a run: `<dir>/round-<n>`. Each appears whole
// or not at all. Blocking; not thread-safe.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/ids.h"
#include "common/model/checkpoint/companions.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"

namespace distro {

// The path of a round's folder, whether it exists or not.
std::string RoundFolder(absl::string_view dir, RoundId round);

struct RoundCheckpoint {
  RoundId round;
  const std::string* config_json;
  const Layout* layout;
  const TensorPieces* tensors;  // of `layout`
  const Companions* companions;
};

// Removes what an earlier process left half written or half removed, which needs its room. Then
// writes `round-<round>` as WriteCheckpointFolder, replacing an existing one.
absl::Status WriteRoundFolder(const std::string& dir, const RoundCheckpoint& checkpoint);

// With `keep` above 0, removes the folders of rounds up to `newest` beyond the `keep` newest of
// them, except that of `in_use`. Folders of later rounds belong to a history that the run has lost
// (its aggregator was restored from a backup): they stay until their round is written again. The
// first error, after all were tried.
absl::Status RemoveOldRoundFolders(const std::string& dir, RoundId newest, int keep,
                                   std::optional<RoundId> in_use = std::nullopt);

}  // namespace distro
