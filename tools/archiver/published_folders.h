// The Hugging Face folders that an archiver publishes: `<dir>/round-<n>`, each whole or not there.
// Blocking; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/checkpoint/companions.h"
#include "kernels/replica/replica.h"

namespace distro::tools {

struct PublishOptions {
  std::string dir;  // empty: nothing is published
  int keep = 3;     // newest folders that stay; 0: all
  // For the shell, after each folder that was published; empty: none.
  std::string command = {};
};

// Writes `round-<next_round>`, over one that is there, and removes older ones beyond `keep`, but
// not that of `in_use`. Folders of later rounds are of a history that the run has lost (its
// aggregator went back to a backup): they stay until their round comes again.
absl::Status Publish(const PublishOptions& options, const Replica& replica,
                     const std::string& config_json, const Companions& companions,
                     std::optional<RoundId> in_use = std::nullopt);

// Where the folder is, or would be.
std::string PublishedPath(const PublishOptions& options, RoundId round);

// Whether that folder is there.
bool IsPublished(const PublishOptions& options, RoundId round);

}  // namespace distro::tools
