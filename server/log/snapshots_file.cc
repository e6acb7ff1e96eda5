#include "server/log/snapshots_file.h"

#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "server/log/framed_message.h"

namespace distro::server {
namespace {

constexpr absl::string_view kMagic = "DSTROSNP";
constexpr int kMaxSnapshots = 2;

}  // namespace

std::string EncodeSnapshotsFile(const v1::StoredSnapshots& snapshots) {
  return EncodeFramedMessage(kMagic, snapshots);
}

absl::StatusOr<v1::StoredSnapshots> ParseSnapshotsFile(absl::string_view bytes) {
  v1::StoredSnapshots stored;
  DISTRO_RETURN_IF_ERROR(ParseFramedMessage(bytes, kMagic, &stored));
  if (stored.snapshots_size() > kMaxSnapshots) return absl::DataLossError("lists more than two");
  uint64_t before = 0;
  for (const v1::SnapshotInfo& snapshot : stored.snapshots()) {
    if (snapshot.round() <= before) return absl::DataLossError("its rounds are not ascending");
    if (snapshot.sha256().size() != sizeof(Sha256Digest)) {
      return absl::DataLossError("a SHA-256 does not have 32 bytes");
    }
    before = snapshot.round();
  }
  return stored;
}

}  // namespace distro::server
