#include "server/log/bucket/store_folder.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/folder.h"
#include "common/base/status_macros.h"
#include "server/log/bucket/bucket_keys.h"
#include "server/log/bucket/folder_copy.h"
#include "server/log/read_run.h"
#include "server/log/record_format.h"
#include "server/log/round_log.h"
#include "server/log/run_identity.h"

namespace distro::server {
namespace {

// Stores one file of a run that is not in the bucket yet.
absl::Status Store(S3Client* bucket, const std::string& data_dir, const std::string& name) {
  DISTRO_ASSIGN_OR_RETURN(const S3Content content,
                          ContentOfFile(absl::StrCat(data_dir, "/", name)));
  const std::string sha256 = ToHex(content.sha256);
  const std::string key = IsSnapshotName(name) ? SnapshotKey(name, sha256) : name;
  const absl::StatusOr<S3Object> there = bucket->Head(key);
  if (there.ok() && there->sha256 == sha256) return absl::OkStatus();
  if (!there.ok() && !absl::IsNotFound(there.status())) return there.status();
  const S3Condition condition = IsWrittenOnce(name) ? S3Condition::Absent() : S3Condition();
  const absl::Status put = bucket->Put(key, content, condition).status();
  if (!absl::IsAlreadyExists(put)) return put;
  // The answer to this write may have been lost.
  if (const auto now = bucket->Head(key); now.ok() && now->sha256 == sha256)
    return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(bucket->place().url, "/", key,
                   ": is of another run, or of another copy of this one: choose another prefix"));
}

// The files of the run, in an order in which run.pb comes last.
absl::StatusOr<std::vector<std::string>> FilesOf(const RunIdentity& run,
                                                 const std::string& data_dir) {
  std::vector<std::string> names;
  names.push_back(SnapshotName(run.initial_snapshot.round()));
  DISTRO_ASSIGN_OR_RETURN(const auto later, ReadSnapshotList(data_dir));
  for (const v1::SnapshotInfo& info : later) names.push_back(SnapshotName(info.round()));
  for (const v1::CompanionFile& file : run.companions)
    names.push_back(absl::StrCat("companions/", file.name()));
  DISTRO_ASSIGN_OR_RETURN(std::vector<std::string> records, NamesIn(data_dir + "/rounds"));
  std::ranges::sort(records);
  for (const std::string& name : records) {
    if (name == kStartRecordName || RoundOfRecordName(name)) names.push_back(kRoundsPrefix + name);
  }
  for (const char* name : kOptionalKeys) {
    if (Exists(absl::StrCat(data_dir, "/", name))) names.push_back(name);
  }
  names.emplace_back(kEpochKey);
  names.emplace_back(kRunKey);
  return names;
}

}  // namespace

absl::Status StoreFolder(S3Client* bucket, const std::string& data_dir, Log* log) {
  DISTRO_ASSIGN_OR_RETURN(const auto run, ReadRun(data_dir, SnapshotCheck::kSha256));
  const absl::StatusOr<S3Object> there = bucket->Head(kRunKey);
  if (!there.ok() && !absl::IsNotFound(there.status())) return there.status();
  if (there.ok()) {
    return absl::AlreadyExistsError(
        absl::StrCat(bucket->place().url, ": has a run already: choose another prefix"));
  }
  const auto rounds = RoundLog::OpenReadOnly(data_dir + "/rounds", run->layout.get(),
                                             std::numeric_limits<int>::max());
  if (!absl::IsNotFound(rounds.status())) DISTRO_RETURN_IF_ERROR(rounds.status());
  DISTRO_RETURN_IF_ERROR(CheckStore(bucket));
  DISTRO_ASSIGN_OR_RETURN(const std::vector<std::string> names, FilesOf(*run, data_dir));
  for (const std::string& name : names) {
    DISTRO_RETURN_IF_ERROR(Store(bucket, data_dir, name));
    log->Info("stored", {{"file", name}});
  }
  return absl::OkStatus();
}

}  // namespace distro::server
