// The properties of a run that are fixed when it is created.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/method/base/round_method.h"
#include "common/model/checkpoint/companions.h"
#include "common/model/layout/layout.h"
#include "distro/v1/run.pb.h"
#include "distro/v1/snapshot.pb.h"
#include "distro/v1/store.pb.h"

namespace distro::server {

struct RunIdentity {
  std::string run_id;
  v1::RunConfig config;  // complete
  std::string model_config_json;
  // The snapshot of round 0, with log_hash 0 (the start record comes later); in a restored run that
  // of a later round. It is never dropped.
  v1::SnapshotInfo initial_snapshot;
  std::string initial_snapshot_path;
  std::shared_ptr<const Layout> layout;
  std::shared_ptr<const RoundMethod> method;
  CompanionList companions = {};    // checked
  std::string companions_dir = {};  // has a file of each name
  // In a restored run: the SHA-256 of the model with which it was created, 32 bytes. Otherwise
  // empty.
  std::string restored_from_sha256 = {};

  const std::string& created_sha256() const {
    return restored_from_sha256.empty() ? initial_snapshot.sha256() : restored_from_sha256;
  }
};

// run.pb: the identity as one file with a checksum (docs/files.md). Pure functions.
std::string EncodeRunFile(const v1::StoredRun& run);

// DataLoss: damaged, or this version does not accept its configuration. FailedPrecondition: of a
// newer version, or with a key that this one does not know.
absl::StatusOr<v1::StoredRun> ParseRunFile(absl::string_view bytes);

}  // namespace distro::server
