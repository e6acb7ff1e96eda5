// Copies a run from a bucket into a data folder.
//
// Thread-compatible. Blocking.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/file_watch.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/net/s3/s3_client.h"
#include "distro/v1/snapshot.pb.h"
#include "distro/v1/store.pb.h"
#include "server/log/disk.h"

namespace distro::server {

// What a copy has found in the bucket.
struct FetchedRun {
  // Whether the run has other files than before, or files with another content; without the epoch.
  bool changed = false;
  std::map<uint64_t, uint64_t> packs = {};  // the first round behind each, by its first one
  // Objects that no leader needs: packed records, snapshots older than those that are listed.
  std::vector<std::string> superfluous = {};
  // The names of listed snapshots that the folder has and the bucket has not.
  std::vector<std::string> missing_snapshots = {};
};

// Whether a round is in a pack that does not begin with it, as in FetchedRun::packs.
bool IsInsidePack(const std::map<uint64_t, uint64_t>& packs, RoundId round);

class FolderCopy {
 public:
  // All are borrowed. Whoever calls Fetch holds the folder's lock.
  FolderCopy(S3Client* bucket, std::string data_dir, Disk* disk, Log* log)
      : bucket_(bucket), data_dir_(std::move(data_dir)), disk_(disk), log_(log) {}

  // Copies what the folder lacks, and removes packed records and unlisted snapshots from it. An
  // aggregator may write to the bucket meanwhile: the copy is then of some moment. DataLoss: an
  // object is missing or damaged. FailedPrecondition: the folder has another run, another copy of
  // it, or a round that the bucket lacks; the message says what to do, and the folder is as before.
  // Reason "disk". The statuses of S3Client. Call it again after an interruption.
  absl::StatusOr<FetchedRun> Fetch();

 private:
  std::string PathOf(absl::string_view name) const;
  std::string UrlOf(absl::string_view key) const;
  absl::StatusOr<bool> FetchRunFile();
  absl::Status CheckFolderIsBehind();
  absl::StatusOr<bool> HasChainHash(const S3Listed& object, RoundId round, uint64_t hash);
  enum class Missing { kIsFine, kIsDamage };
  absl::Status FetchSmall(const std::string& name, Missing missing, FetchedRun* run);
  // Aborted: the bucket changed meanwhile, or an object is missing.
  absl::Status FetchSnapshotsAndRounds(FetchedRun* run);
  absl::Status FetchSnapshots(FetchedRun* run);
  absl::Status FetchSnapshot(const v1::SnapshotInfo& info, const std::string& name,
                             FetchedRun* run);
  absl::Status FetchRounds(FetchedRun* run);
  absl::Status FetchRecord(const std::string& name, uint64_t bytes, FetchedRun* run);
  absl::Status RemovePacked(const FetchedRun& run);
  absl::Status Download(const std::string& key, const std::string& name, uint64_t bytes);

  S3Client* const bucket_;
  const std::string data_dir_;
  Disk* const disk_;
  Log* const log_;
  v1::StoredRun run_;
  bool is_behind_ = false;  // the folder; it stays so, because nobody else writes to it
  std::map<std::string, FileWatch> verified_;  // snapshots whose SHA-256 was right, by path
  uint64_t fetched_bytes_ = 0;
};

// OK: the store honours If-None-Match and If-Match of a PUT, without which two aggregators could
// overwrite each other's rounds, and keeps what this program says of an object. FailedPrecondition:
// it does not; the message names what is missing. The statuses of S3Client.
absl::Status CheckStore(S3Client* bucket);

}  // namespace distro::server
