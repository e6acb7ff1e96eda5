// What is fixed when a run is created.
#pragma once

#include <memory>
#include <string>

#include "common/layout/layout.h"
#include "distro/v1/run.pb.h"
#include "distro/v1/snapshot.pb.h"

namespace distro::server {

struct RunIdentity {
  std::string run_id;
  v1::RunConfig config;  // complete
  std::string model_config_json;
  v1::SnapshotInfo initial_snapshot;  // round 0; log_hash is 0 (the start record comes later)
  std::string initial_snapshot_path;
  std::shared_ptr<const Layout> layout;
};

}  // namespace distro::server
