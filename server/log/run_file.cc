#include "server/log/run_file.h"

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/ids.h"
#include "common/run/run_config.h"

namespace distro::server {
namespace {

constexpr absl::string_view kMagic = "DSTRORUN";
constexpr uint32_t kVersion = 1;
constexpr size_t kFramingBytes = 8 + 4 + 8;  // magic, version, checksum

std::string Prefix() {
  std::string bytes(kMagic);
  AppendLittleEndian(&bytes, kVersion);
  return bytes;
}

}  // namespace

std::string EncodeRunFile(const v1::StoredRun& run) {
  std::string bytes = Prefix() + run.SerializeAsString();
  const uint64_t checksum = Xxh3(bytes);
  AppendLittleEndian(&bytes, checksum);
  return bytes;
}

absl::StatusOr<v1::StoredRun> ParseRunFile(absl::string_view bytes) {
  if (bytes.size() < kFramingBytes || bytes.substr(0, 12) != Prefix()) {
    return absl::DataLossError("is not a run file of this version");
  }
  const absl::string_view checked = bytes.substr(0, bytes.size() - 8);
  uint64_t checksum;
  std::memcpy(&checksum, bytes.data() + checked.size(), sizeof(checksum));
  if (checksum != Xxh3(checked)) return absl::DataLossError("its checksum does not match");
  v1::StoredRun run;
  if (!run.ParseFromArray(bytes.data() + 12, static_cast<int>(checked.size() - 12))) {
    return absl::DataLossError("is not a StoredRun");
  }
  const auto config = CompleteRunConfig(run.config());
  if (!config.ok()) {
    return absl::DataLossError(absl::StrCat("its configuration: ", config.status().message()));
  }
  *run.mutable_config() = *config;
  return run;
}

}  // namespace distro::server
