// The properties of a run that are fixed when it is created.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/companions.h"
#include "common/layout/layout.h"
#include "common/round/round_method.h"
#include "distro/v1/run.pb.h"
#include "distro/v1/snapshot.pb.h"
#include "distro/v1/store.pb.h"

namespace distro::server {

struct RunIdentity {
  std::string run_id;
  v1::RunConfig config;  // complete
  std::string model_config_json;
  v1::SnapshotInfo initial_snapshot;  // round 0; log_hash is 0 (the start record comes later)
  std::string initial_snapshot_path;
  std::shared_ptr<const Layout> layout;
  std::shared_ptr<const RoundMethod> method;
  CompanionList companions = {};    // checked
  std::string companions_dir = {};  // which has a file of each name
};

// run.pb: the same as one file with a checksum (docs/files.md). Pure functions.
std::string EncodeRunFile(const v1::StoredRun& run);

// DataLoss: damaged, or its configuration is not one that this version accepts. FailedPrecondition:
// of a newer version.
absl::StatusOr<v1::StoredRun> ParseRunFile(absl::string_view bytes);

}  // namespace distro::server
