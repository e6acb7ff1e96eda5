// The Hugging Face folders that an archiver publishes: `<dir>/round-<n>`. Each appears whole or not
// at all. Blocking; not thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/model/checkpoint/companions.h"
#include "kernels/replica/replica.h"

namespace distro::tools {

struct PublishOptions {
  std::string dir;  // empty: nothing is published
  int keep = 3;     // newest folders to keep; 0: all
  // Shell command to run after each published folder; empty: none.
  std::string command = {};
};

// Writes the folder of the replica's next round as WriteRoundFolder.
absl::Status Publish(const PublishOptions& options, const Replica& replica,
                     const std::string& config_json, const Companions& companions);

// The folder's path, whether it exists or not.
std::string PublishedPath(const PublishOptions& options, RoundId round);

// Whether that folder exists.
bool IsPublished(const PublishOptions& options, RoundId round);

}  // namespace distro::tools
