#include "server/log/bucket/bucket_keys.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/log/record_format.h"

namespace distro::server {
namespace {

constexpr absl::string_view kSnapshotEnding = ".safetensors";

}  // namespace

std::optional<std::string> StoredName(absl::string_view data_dir, absl::string_view path) {
  if (!absl::ConsumePrefix(&path, data_dir) || !absl::ConsumePrefix(&path, "/"))
    return std::nullopt;
  if (path == "lock" || absl::EndsWith(path, ".tmp") || absl::StartsWith(path, "incoming/"))
    return std::nullopt;
  return std::string(path);
}

std::optional<RoundId> RoundOfKey(absl::string_view key) {
  if (!absl::ConsumePrefix(&key, kRoundsPrefix)) return std::nullopt;
  return RoundOfRecordName(key);
}

bool IsWrittenOnce(absl::string_view key) {
  return absl::StartsWith(key, kRoundsPrefix) || key == kRunKey;
}

std::string SnapshotName(uint64_t round) {
  return absl::StrCat(kSnapshotsPrefix, round, kSnapshotEnding);
}

bool IsSnapshotName(absl::string_view name) {
  return absl::StartsWith(name, kSnapshotsPrefix) && absl::EndsWith(name, kSnapshotEnding);
}

std::string SnapshotKey(absl::string_view name, absl::string_view sha256) {
  absl::ConsumeSuffix(&name, kSnapshotEnding);
  return absl::StrCat(name, "-", sha256, kSnapshotEnding);
}

std::string SnapshotKey(const v1::SnapshotInfo& info) {
  return SnapshotKey(SnapshotName(info.round()), absl::BytesToHexString(info.sha256()));
}

std::optional<uint64_t> RoundOfSnapshotKey(absl::string_view key) {
  uint64_t round = 0;
  if (!IsSnapshotName(key) || !absl::ConsumePrefix(&key, kSnapshotsPrefix) ||
      !absl::SimpleAtoi(key.substr(0, key.find('-')), &round))
    return std::nullopt;
  return round;
}

}  // namespace distro::server
