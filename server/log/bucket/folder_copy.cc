#include "server/log/bucket/folder_copy.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/checksum.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/model/checkpoint/companions.h"
#include "common/model/checkpoint/initial_snapshot.h"
#include "distro/v1/round.pb.h"
#include "server/log/bucket/bucket_keys.h"
#include "server/log/incoming_file.h"
#include "server/log/read_run.h"
#include "server/log/record_format.h"
#include "server/log/record_reader.h"
#include "server/log/run_identity.h"

namespace distro::server {
namespace {

constexpr uint64_t kMaxSmallBytes = kMaxCompanionBytes;  // of a file that is no snapshot, no record
constexpr int kTries = 8;  // while an aggregator packs rounds and replaces snapshots

std::string NameOf(RoundId round) { return absl::StrCat(kRoundsPrefix, RecordName(round)); }

}  // namespace

bool IsInsidePack(const std::map<uint64_t, uint64_t>& packs, RoundId round) {
  const auto next = packs.upper_bound(round.value());
  if (next == packs.begin()) return false;
  const auto& [first, behind] = *std::prev(next);
  return first < round.value() && round.value() < behind;
}

std::string FolderCopy::PathOf(absl::string_view name) const {
  return absl::StrCat(data_dir_, "/", name);
}

std::string FolderCopy::UrlOf(absl::string_view key) const {
  return absl::StrCat(bucket_->place().url, "/", key);
}

// Whether the bucket has a run.
absl::StatusOr<bool> FolderCopy::FetchRunFile() {
  const std::string path = PathOf(kRunKey);
  const absl::StatusOr<std::string> bytes = bucket_->Read(kRunKey, kMaxSmallBytes);
  if (absl::IsNotFound(bytes.status())) {
    if (!Exists(path)) return false;
    return absl::FailedPreconditionError(
        absl::StrCat(data_dir_, " has a run and ", bucket_->place().url,
                     " has none: copy it there first: distroctl log copy --from ", data_dir_,
                     " --to ", bucket_->place().url));
  }
  DISTRO_RETURN_IF_ERROR(bytes.status());
  if (Exists(path)) {
    DISTRO_ASSIGN_OR_RETURN(const std::string ours, ReadFile(path, kMaxSmallBytes));
    if (ours != *bytes) {
      return absl::FailedPreconditionError(
          absl::StrCat(data_dir_, " and ", bucket_->place().url,
                       " have different runs: give this process an empty --data_dir"));
    }
  }
  absl::StatusOr<v1::StoredRun> parsed = ParseRunFile(*bytes);
  if (!parsed.ok()) return Annotate(parsed.status(), UrlOf(kRunKey));
  run_ = *std::move(parsed);
  return true;
}

// Whether the record of the object has the round, with this chain hash.
absl::StatusOr<bool> FolderCopy::HasChainHash(const S3Listed& object, RoundId round,
                                              uint64_t hash) {
  const std::string name = "rounds/compared.tmp";
  const auto remover = absl::MakeCleanup([&] { disk_->Unlink(PathOf(name)).IgnoreError(); });
  DISTRO_RETURN_IF_ERROR(RemoveIfThere(disk_, PathOf(name)));
  DISTRO_RETURN_IF_ERROR(Download(object.key, name, object.bytes));
  const auto reader = RecordReader::Open(PathOf(name), RecordKind::kRound);
  if (!reader.ok()) return Annotate(reader.status(), UrlOf(object.key));
  return (*reader)->round() <= round && round < (*reader)->end() &&
         (*reader)->ChainHashOf(round) == hash;
}

// Before anything in the folder is changed: its newest round must be in the bucket, with the same
// chain hash, so that the folder's log is the beginning of the bucket's.
absl::Status FolderCopy::CheckFolderIsBehind() {
  if (is_behind_ || !Exists(PathOf("rounds"))) return absl::OkStatus();
  DISTRO_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(PathOf("rounds")));
  std::optional<RoundId> newest;
  for (const std::string& name : names) newest = std::max(newest, RoundOfRecordName(name));
  if (!newest) return absl::OkStatus();
  const std::string name = NameOf(*newest);
  const auto ours = RecordReader::Open(PathOf(name), RecordKind::kRound);
  if (!ours.ok()) return absl::OkStatus();  // damaged: it is fetched again
  const RoundId round((*ours)->end().value() - 1);
  DISTRO_ASSIGN_OR_RETURN(const std::vector<S3Listed> listed, bucket_->List(kRoundsPrefix));
  const std::string last = NameOf(round);
  const S3Listed* covers = nullptr;  // the last one at or before the round
  for (const S3Listed& object : listed) {
    if (RoundOfKey(object.key) && object.key <= last) covers = &object;
  }
  bool same = false;
  if (covers != nullptr) {
    DISTRO_ASSIGN_OR_RETURN(const S3Object object, bucket_->Head(covers->key));
    DISTRO_ASSIGN_OR_RETURN(const Sha256Digest sha256, Sha256OfFile(PathOf(name)));
    same = covers->key == name && object.sha256 == ToHex(sha256);
    if (!same) {
      DISTRO_ASSIGN_OR_RETURN(same, HasChainHash(*covers, round, (*ours)->ChainHashOf(round)));
    }
  }
  is_behind_ = same;
  if (same) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(PathOf(name), ": ", bucket_->place().url, " does not have round ", round.value(),
                   " of this folder, which was used without it: copy the folder to another prefix "
                   "(distroctl log copy), or give this process an empty --data_dir"));
}

absl::Status FolderCopy::FetchSmall(const std::string& name, Missing missing, FetchedRun* run) {
  const std::string path = PathOf(name);
  const absl::StatusOr<S3Object> object = bucket_->Head(name);
  if (absl::IsNotFound(object.status())) {
    if (missing == Missing::kIsDamage)
      return absl::DataLossError(absl::StrCat(UrlOf(name), ": is missing: restore the object",
                                              Exists(path) ? " from " : "",
                                              Exists(path) ? path : ""));
    run->changed |= Exists(path);
    return RemoveIfThere(disk_, path);
  }
  DISTRO_RETURN_IF_ERROR(object.status());
  const absl::StatusOr<Sha256Digest> ours = Sha256OfFile(path);
  if (ours.ok() && ToHex(*ours) == object->sha256) return absl::OkStatus();
  DISTRO_ASSIGN_OR_RETURN(const std::string bytes, bucket_->Read(name, kMaxSmallBytes));
  run->changed |= name != kEpochKey;
  return WriteAtomically(disk_, path, bytes);
}

absl::Status FolderCopy::Download(const std::string& key, const std::string& name, uint64_t bytes) {
  const std::string path = PathOf(name);
  const std::string temporary = path + ".tmp";
  DISTRO_RETURN_IF_ERROR(RemoveIfThere(disk_, temporary));
  DISTRO_ASSIGN_OR_RETURN(const int fd, disk_->Create(temporary));
  const auto closer = absl::MakeCleanup([fd] { close(fd); });
  const auto write = [&]() -> absl::Status {
    DISTRO_ASSIGN_OR_RETURN(const S3Object got,
                            bucket_->Get(key, [&](uint64_t at, absl::string_view piece) {
                              return disk_->Write(fd, temporary, at, piece);
                            }));
    DISTRO_ASSIGN_OR_RETURN(const uint64_t size, FileSizeOrZero(temporary));
    if (size == got.bytes) return disk_->Fsync(fd, temporary);
    return absl::UnavailableError(absl::StrCat(UrlOf(key), ": changed while it was fetched"));
  };
  absl::Status status = write();
  if (status.ok()) status = disk_->Rename(temporary, path);
  if (!status.ok()) disk_->Unlink(temporary).IgnoreError();
  fetched_bytes_ += bytes;
  return status;
}

absl::Status FolderCopy::FetchSnapshot(const v1::SnapshotInfo& info, const std::string& name,
                                       FetchedRun* run) {
  const std::string path = PathOf(name);
  const auto is_right = [&] {
    const auto known = verified_.find(path);
    if (known != verified_.end() && !known->second.Changed()) return true;
    FileWatch watch({path});
    const bool right = CheckStoredSnapshot(path, info).ok();
    if (right) verified_.insert_or_assign(path, std::move(watch));
    return right;
  };
  if (is_right()) return absl::OkStatus();
  run->changed = true;
  const std::string key = SnapshotKey(info);
  const absl::Status status = Download(key, name, info.size_bytes());
  if (absl::IsNotFound(status)) return absl::DataLossError(status.message());
  DISTRO_RETURN_IF_ERROR(status);
  if (is_right()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(UrlOf(key), ": has not the SHA-256 of its name"));
}

absl::Status FolderCopy::FetchSnapshots(FetchedRun* run) {
  DISTRO_ASSIGN_OR_RETURN(std::vector<v1::SnapshotInfo> infos, ReadSnapshotList(data_dir_));
  // An uploaded one of these rounds or newer may be listed yet; older ones are refused.
  const uint64_t oldest = infos.size() < 2 ? 0 : infos.front().round();
  infos.insert(infos.begin(), run_.initial_snapshot());
  DISTRO_ASSIGN_OR_RETURN(const std::vector<S3Listed> listed, bucket_->List(kSnapshotsPrefix));
  std::set<std::string> names, keys;
  for (const v1::SnapshotInfo& info : infos) {
    const std::string name = SnapshotName(info.round());
    names.insert(name);
    const std::string& key = *keys.insert(SnapshotKey(info)).first;
    const absl::Status status = FetchSnapshot(info, name, run);
    const bool initial = info.round() == run_.initial_snapshot().round();
    if (initial || !absl::IsDataLoss(status)) DISTRO_RETURN_IF_ERROR(status);
    if (!status.ok()) log_->Error("snapshot not fetched", {{"error", status}});
    if (status.ok() && std::ranges::find(listed, key, &S3Listed::key) == listed.end())
      run->missing_snapshots.push_back(name);
  }
  for (const S3Listed& object : listed) {
    const std::optional<uint64_t> round = RoundOfSnapshotKey(object.key);
    if (round && *round < oldest && !keys.contains(object.key))
      run->superfluous.push_back(object.key);
  }
  DISTRO_ASSIGN_OR_RETURN(const std::vector<std::string> files, NamesIn(PathOf("snapshots")));
  for (const std::string& file : files) {
    const std::string name = kSnapshotsPrefix + file;
    if (names.contains(name)) continue;
    DISTRO_RETURN_IF_ERROR(RemoveIfThere(disk_, PathOf(name)));
  }
  return absl::OkStatus();
}

absl::Status FolderCopy::FetchRecord(const std::string& name, uint64_t bytes, FetchedRun* run) {
  const std::string path = PathOf(name);
  DISTRO_ASSIGN_OR_RETURN(const uint64_t size, FileSizeOrZero(path));
  const RecordKind kind =
      absl::EndsWith(name, kStartRecordName) ? RecordKind::kStart : RecordKind::kRound;
  if (size == bytes && RecordReader::Open(path, kind).ok()) return absl::OkStatus();
  run->changed = true;
  const absl::Status status = Download(name, name, bytes);
  return absl::IsNotFound(status) ? absl::AbortedError(status.message()) : status;
}

absl::Status FolderCopy::FetchRounds(FetchedRun* run) {
  DISTRO_ASSIGN_OR_RETURN(std::vector<S3Listed> listed, bucket_->List(kRoundsPrefix));
  const std::string start = absl::StrCat(kRoundsPrefix, kStartRecordName);
  const auto found = std::ranges::find(listed, start, &S3Listed::key);
  RoundId next(0);
  if (found != listed.end()) {
    DISTRO_RETURN_IF_ERROR(FetchRecord(start, found->bytes, run));
    DISTRO_ASSIGN_OR_RETURN(const auto reader,
                            RecordReader::Open(PathOf(start), RecordKind::kStart));
    v1::StartHeader header;
    if (!header.ParseFromString(reader->header_bytes()))
      return absl::DataLossError(absl::StrCat(UrlOf(start), ": the header is not a start header"));
    next = RoundId(header.first_round());
    listed.erase(found);
  }
  for (const S3Listed& object : listed) {
    const std::optional<RoundId> round = RoundOfKey(object.key);
    if (!round) continue;
    if (*round < next) {
      run->superfluous.push_back(object.key);
      continue;
    }
    if (*round > next) {
      return absl::AbortedError(
          absl::StrCat(UrlOf(NameOf(next)), ": is missing, but there is ", RecordName(*round)));
    }
    DISTRO_RETURN_IF_ERROR(FetchRecord(object.key, object.bytes, run));
    DISTRO_ASSIGN_OR_RETURN(const auto reader,
                            RecordReader::Open(PathOf(object.key), RecordKind::kRound));
    if (reader->round() != *round)
      return absl::DataLossError(
          absl::StrCat(UrlOf(object.key), ": is not the record of its name"));
    if (reader->packed()) run->packs[round->value()] = reader->end().value();
    next = reader->end();
  }
  return RemovePacked(*run);
}

// Removes what a pack has replaced.
absl::Status FolderCopy::RemovePacked(const FetchedRun& run) {
  DISTRO_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(PathOf("rounds")));
  for (const std::string& name : names) {
    const std::optional<RoundId> round = RoundOfRecordName(name);
    if (round && IsInsidePack(run.packs, *round))
      DISTRO_RETURN_IF_ERROR(RemoveIfThere(disk_, PathOf(kRoundsPrefix + name)));
  }
  return absl::OkStatus();
}

absl::Status FolderCopy::FetchSnapshotsAndRounds(FetchedRun* run) {
  DISTRO_RETURN_IF_ERROR(FetchSnapshots(run));
  const absl::Status rounds = FetchRounds(run);
  if (!absl::IsAborted(rounds)) DISTRO_RETURN_IF_ERROR(rounds);
  // Rounds may be packed up to a newer snapshot than those that were listed.
  FetchedRun now;
  DISTRO_RETURN_IF_ERROR(FetchSmall(kSnapshotsKey, Missing::kIsFine, &now));
  run->changed |= now.changed;
  if (!now.changed) return rounds;
  return absl::AbortedError("the snapshots are replaced again and again");
}

absl::StatusOr<FetchedRun> FolderCopy::Fetch() {
  const absl::Duration begin = Clock::Real()->MonotonicNow();
  FetchedRun run;
  fetched_bytes_ = 0;
  DISTRO_ASSIGN_OR_RETURN(const bool has_run, FetchRunFile());
  DISTRO_RETURN_IF_ERROR(CheckFolderIsBehind());
  DISTRO_RETURN_IF_ERROR(
      FetchSmall(kEpochKey, has_run ? Missing::kIsDamage : Missing::kIsFine, &run));
  if (!has_run) return run;
  for (const char* folder : {"companions", "snapshots", "rounds"})
    DISTRO_RETURN_IF_ERROR(disk_->CreateFolder(PathOf(folder)));
  for (const char* name : kOptionalKeys)
    DISTRO_RETURN_IF_ERROR(FetchSmall(name, Missing::kIsFine, &run));
  for (const v1::CompanionFile& file : run_.companions()) {
    DISTRO_RETURN_IF_ERROR(
        FetchSmall(absl::StrCat("companions/", file.name()), Missing::kIsDamage, &run));
  }
  absl::Status status;
  for (int i = 0; i < kTries; ++i) {
    if (i > 0) absl::SleepFor(bucket_->first_pause());
    FetchedRun tried{.changed = run.changed};
    status = FetchSnapshotsAndRounds(&tried);
    run.changed |= tried.changed;
    if (status.ok()) {
      run = std::move(tried);
      break;
    }
    if (!absl::IsAborted(status)) return status;
  }
  if (!status.ok()) {
    return absl::DataLossError(
        absl::StrCat(status.message(),
                     ": restore the object, or copy the folder of an aggregator that has it "
                     "to another prefix (distroctl log copy)"));
  }
  DISTRO_RETURN_IF_ERROR(FetchSmall(kRunKey, Missing::kIsDamage, &run));
  if (!run.changed) return run;
  log_->Info("run fetched",
             {{"log", bucket_->place().url},
              {"run", run_.run_id()},
              {"bytes", fetched_bytes_},
              {"seconds", absl::ToDoubleSeconds(Clock::Real()->MonotonicNow() - begin)}});
  return run;
}

absl::Status CheckStore(S3Client* bucket) {
  // A key of its own: another process may check at the same time.
  const std::string key = absl::StrFormat("check-%08x", std::random_device()());
  const auto remover = absl::MakeCleanup([&] { bucket->Delete(key).IgnoreError(); });
  const S3Content content = ContentOf("distro-aggregator checks that PUT honours conditions\n");
  const auto lacks = [&](absl::string_view what) {
    return absl::FailedPreconditionError(
        absl::StrCat(bucket->place().url, ": the store ", what,
                     ", so that two aggregators could overwrite each other's rounds: use another "
                     "store (docs/bucket.md has a table)"));
  };
  const auto put = [&](const S3Condition& condition) {
    absl::Status status;
    for (int i = 0; i < kTries; ++i) {
      if (i > 0) absl::SleepFor(bucket->first_pause());
      status = bucket->Put(key, content, condition).status();
      if (!absl::IsUnavailable(status)) return status;
    }
    return status;
  };
  DISTRO_RETURN_IF_ERROR(put({}));
  const absl::Status second = put(S3Condition::Absent());
  if (second.ok()) return lacks("ignores If-None-Match of a PUT");
  if (!absl::IsAlreadyExists(second)) return second;
  const absl::Status other = put(S3Condition::Matches("\"00000000000000000000000000000000\""));
  if (other.ok()) return lacks("ignores If-Match of a PUT");
  if (!absl::IsAlreadyExists(other)) return other;
  DISTRO_ASSIGN_OR_RETURN(const S3Object object, bucket->Head(key));
  if (object.sha256 != ToHex(content.sha256)) return lacks("drops x-amz-meta- headers");
  const absl::Status right = put(S3Condition::Matches(object.etag));
  return absl::IsAlreadyExists(right) ? lacks("refuses If-Match with its own ETag") : right;
}

}  // namespace distro::server
