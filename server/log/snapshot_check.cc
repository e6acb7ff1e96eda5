#include "server/log/snapshot_check.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/model/checkpoint/snapshot.h"
#include "common/model/layout/finite.h"
#include "kernels/replica/replica.h"

namespace distro::server {
absl::StatusOr<std::shared_ptr<const Layout>> LayoutOfSnapshot(const std::string& path,
                                                               const v1::RunConfig& config) {
  DISTRO_ASSIGN_OR_RETURN(Manifest manifest, SnapshotManifest(path));
  DISTRO_ASSIGN_OR_RETURN(Layout layout, Layout::Create(std::move(manifest),
                                                        static_cast<int>(config.segment_blocks())));
  return std::make_shared<const Layout>(std::move(layout));
}

absl::StatusOr<uint64_t> CheckedStateHash(const std::string& path, const Layout& layout) {
  TensorBuffer parameters(layout);
  DISTRO_RETURN_IF_ERROR(ReadSnapshot(path, layout, &parameters));
  DISTRO_RETURN_IF_ERROR(Annotate(CheckFinite(layout, parameters), path));
  return StateHashOnCpu(layout, parameters);
}

absl::Status AsUpload(const absl::Status& status, const std::string& path) {
  if (!absl::IsInvalidArgument(status)) return status;
  return WithMessage(status, absl::StrReplaceAll(status.message(), {{path, "snapshot"}}));
}

std::string DigestBytes(const Sha256Digest& digest) { return {digest.begin(), digest.end()}; }

}  // namespace distro::server
