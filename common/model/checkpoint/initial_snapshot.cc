#include "common/model/checkpoint/initial_snapshot.h"

#include <utility>

#include "common/base/mapped_file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/model/checkpoint/hf_folder.h"
#include "common/model/checkpoint/snapshot.h"
#include "common/model/layout/finite.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"

namespace distro {

absl::StatusOr<Sha256Digest> Sha256OfFile(const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return Sha256(file.bytes());
}

absl::StatusOr<InitialSnapshot> PrepareInitialSnapshot(const std::string& checkpoint_dir,
                                                       const std::string& out_path) {
  DISTRO_ASSIGN_OR_RETURN(const CheckpointFolder folder, OpenCheckpointFolder(checkpoint_dir));
  DISTRO_ASSIGN_OR_RETURN(const Layout layout,
                          Layout::Create(folder.manifest(), kDefaultSegmentBlocks));
  DISTRO_ASSIGN_OR_RETURN(Companions companions, ReadCompanions(checkpoint_dir));
  TensorBuffer parameters(layout);
  DISTRO_RETURN_IF_ERROR(folder.ReadInto(layout, &parameters));
  DISTRO_RETURN_IF_ERROR(Annotate(CheckFinite(layout, parameters), checkpoint_dir));
  DISTRO_RETURN_IF_ERROR(WriteSnapshot(out_path, layout, parameters, {}));
  DISTRO_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(out_path));
  return InitialSnapshot{folder.config_json(), file.bytes().size(), Sha256(file.bytes()),
                         std::move(companions)};
}

}  // namespace distro
