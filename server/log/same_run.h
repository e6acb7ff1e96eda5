// Compares a run that is asked for with the run of a data folder, so that an aggregator started
// again with the same files continues, and one with other files says what differs and what to do.
// Pure; thread-safe.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/checksum.h"
#include "common/model/checkpoint/companions.h"
#include "distro/v1/run.pb.h"
#include "server/log/run_identity.h"

namespace distro::server {

struct AskedRun {
  const v1::RunConfig& config;  // only the keys that run.json sets
  absl::string_view model_config_json;
  const Sha256Digest& sha256;  // of the initial model
  const CompanionList& companions;
};

// AlreadyExists: another run; the message names every key or file that differs, both values, and
// the remedy. A key with a default that run.json does not set is the run's. The statuses of
// CompleteRunConfig. The same JSON in other bytes is the same config.json, and so is one saved by
// another version of transformers. Companions are compared if both have some.
absl::Status CompareRuns(const RunIdentity& stored, const AskedRun& asked);

// As a request for a run is answered: FailedPrecondition where CompareRuns says AlreadyExists.
// Other statuses as they are, also AlreadyExists of a disk.
absl::Status RefusalOf(const absl::Status& status);

// Whether two companions of this name have the same content: the same bytes, the same JSON, or a
// template with other line ends.
bool SameCompanion(absl::string_view name, absl::string_view a, absl::string_view b);

}  // namespace distro::server
