#include "common/simulation/local_run.h"

#include <memory>
#include <utility>

#include "common/base/status_macros.h"
#include "common/method/methods.h"
#include "common/model/checkpoint/hf_folder.h"
#include "common/model/checkpoint/initial_snapshot.h"

namespace distro {

absl::StatusOr<LocalRun> MakeLocalRun(const v1::RunConfig& config,
                                      const std::string& checkpoint_dir,
                                      const std::string& snapshot_path, StateHashOf state_hash) {
  DISTRO_ASSIGN_OR_RETURN(const InitialSnapshot snapshot,
                          PrepareInitialSnapshot(checkpoint_dir, snapshot_path));
  DISTRO_ASSIGN_OR_RETURN(const CheckpointFolder checkpoint, OpenCheckpointFolder(checkpoint_dir));
  DISTRO_ASSIGN_OR_RETURN(Layout layout,
                          Layout::Create(checkpoint.manifest(), config.segment_blocks()));
  TensorBuffer parameters(layout);
  DISTRO_RETURN_IF_ERROR(checkpoint.ReadInto(layout, &parameters));
  LocalRun run = {.config = config,
                  .model_config_json = snapshot.model_config_json,
                  .layout = std::make_shared<const Layout>(std::move(layout)),
                  .method = nullptr,
                  .snapshot = {},
                  .snapshot_path = snapshot_path};
  DISTRO_ASSIGN_OR_RETURN(run.method,
                          MethodOf(config).MakeRounds(config, run.layout, run.model_config_json));
  run.snapshot.set_size_bytes(snapshot.bytes);
  run.snapshot.set_sha256(snapshot.sha256.data(), snapshot.sha256.size());
  run.snapshot.set_state_hash(state_hash(*run.layout, parameters));
  return run;
}

}  // namespace distro
