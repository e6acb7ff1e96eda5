#include "server/log/bucket/bucket_disk.h"

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/checksum.h"
#include "common/base/folder.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/model/checkpoint/initial_snapshot.h"
#include "server/log/bucket/bucket_keys.h"
#include "server/log/read_run.h"
#include "server/log/record_reader.h"
#include "server/log/run_identity.h"

namespace distro::server {
namespace {

constexpr int kTries = 4;

// A status of the bucket, or of reading a local file, as one of the disk.
absl::Status AsDiskError(DiskOperation operation, const absl::Status& status) {
  return status.ok() ? status : StoreError(operation, status);
}

absl::Status WrittenByAnother(absl::string_view url, absl::string_view name) {
  return absl::AbortedError(
      absl::StrCat(url, "/", name,
                   ": was written by an aggregator that served this run before and was slow to "
                   "end: start again to go on after it"));
}

}  // namespace

BucketDisk::BucketDisk(S3Client* bucket, Disk* local, std::string data_dir, LeaderOptions leader,
                       Log* log)
    : bucket_(bucket),
      local_(local),
      data_dir_(std::move(data_dir)),
      leader_(std::move(leader)),
      log_(log),
      copy_(bucket, data_dir_, local, log) {}

// Its thread uses the other members.
BucketDisk::~BucketDisk() { heartbeat_.reset(); }

std::string BucketDisk::epoch_sha256() const {
  absl::MutexLock lock(&mu_);
  return epoch_sha256_;
}

absl::StatusOr<bool> BucketDisk::Restore() {
  absl::StatusOr<FetchedRun> run = Fetch();
  // With a run in the folder the credentials were right once, and are being renewed.
  const bool refused = absl::IsPermissionDenied(run.status());
  if (refused && !Exists(RunFilePath(data_dir_)))
    return absl::InvalidArgumentError(run.status().message());
  if (refused || absl::IsUnavailable(run.status()))
    return StoreError(DiskOperation::kPut, run.status());
  DISTRO_RETURN_IF_ERROR(run.status());
  if (!epoch_sha256().empty()) Tidy(*run);
  absl::MutexLock lock(&mu_);
  packs_ = std::move(run->packs);
  return run->changed;
}

absl::StatusOr<FetchedRun> BucketDisk::Fetch() {
  if (!store_checked_) DISTRO_RETURN_IF_ERROR(CheckStore(bucket_));
  store_checked_ = true;
  // One that does not lead yet, and has not claimed to as a standby does, keeps no other from it.
  const bool leads = leader_.patience > absl::ZeroDuration() || !epoch_sha256().empty();
  if (heartbeat_ == nullptr && leads && leader_.interval > absl::ZeroDuration()) {
    heartbeat_ = std::make_unique<LeaderHeartbeat>(
        *bucket_, [this] { return epoch_sha256(); }, leader_, log_);
  }
  return copy_.Fetch();
}

// Makes the bucket have what the run has. What fails is done at the next start.
void BucketDisk::Tidy(const FetchedRun& run) {
  int failed = 0;
  for (const std::string& name : run.missing_snapshots) {
    const absl::StatusOr<S3Content> content = ContentOfFile(absl::StrCat(data_dir_, "/", name));
    if (!content.ok() || !Store(name, [&] { return PutSnapshot(name, *content); }).ok()) ++failed;
  }
  for (const std::string& key : run.superfluous) {
    if (!CheckLeader(DiskOperation::kDelete).ok() || !bucket_->Delete(key).ok()) ++failed;
  }
  const size_t all = run.superfluous.size() + run.missing_snapshots.size();
  if (all > 0) log_->Info("bucket tidied", {{"objects", all}, {"failed", failed}});
}

absl::Status BucketDisk::CreateFolder(const std::string& path) {
  return local_->CreateFolder(path);
}

absl::StatusOr<int> BucketDisk::Create(const std::string& path) { return local_->Create(path); }

absl::Status BucketDisk::Write(int fd, const std::string& path, uint64_t offset,
                               absl::string_view bytes) {
  return local_->Write(fd, path, offset, bytes);
}

absl::Status BucketDisk::Fsync(int fd, const std::string& path) { return local_->Fsync(fd, path); }

absl::Status BucketDisk::FsyncFolder(const std::string& /*path*/) { return absl::OkStatus(); }

absl::Status BucketDisk::CheckLeader(DiskOperation operation) {
  const absl::Status status = CheckEpoch(bucket_, epoch_sha256());
  return absl::IsFailedPrecondition(status) ? status : AsDiskError(operation, status);
}

// An object of another program has no SHA-256 of ours.
absl::StatusOr<S3Object> BucketDisk::Look(const std::string& key) {
  absl::StatusOr<S3Object> object = bucket_->Head(key);
  if (!object.ok() || !object->sha256.empty()) return object;
  Sha256Stream hash;
  const auto add = [&](uint64_t at, absl::string_view piece) {
    if (at == 0) hash = Sha256Stream();
    hash.Update(piece);
    return absl::OkStatus();
  };
  object = bucket_->Get(key, add);
  if (object.ok()) object->sha256 = ToHex(hash.Finish());
  return object;
}

// Calls `put` between two looks at the epoch, a few times where that may help. After the second one
// whoever starts next finds the object; if the epoch is no longer ours, the next leader may have
// gone on without it, and nobody may learn of it from this process.
absl::Status BucketDisk::Store(const std::string& name, absl::FunctionRef<absl::Status()> put) {
  absl::Status status;
  for (int i = 0; i < kTries; ++i) {
    if (i > 0) absl::SleepFor(bucket_->first_pause() * (1 << (i - 1)));
    status = CheckLeader();
    if (status.ok()) status = put();
    if (status.ok() && name != kEpochKey) status = CheckLeader();
    if (ReasonOf(status) != "disk") return status;
  }
  return status;
}

absl::Status BucketDisk::PutNew(const std::string& name, const std::string& path,
                                const S3Content& content) {
  const absl::Status put = bucket_->Put(name, content, S3Condition::Absent()).status();
  if (!absl::IsAlreadyExists(put)) return AsDiskError(DiskOperation::kPut, put);
  if (!IsWrittenOnce(name)) return Replace(name, path, content);  // of a creation that did not end
  const absl::StatusOr<S3Object> there = Look(name);
  if (!there.ok()) return AsDiskError(DiskOperation::kPut, there.status());
  // The answer to a write of this process may have been lost.
  if (there->sha256 == ToHex(content.sha256)) return absl::OkStatus();
  DISTRO_RETURN_IF_ERROR(CheckLeader());
  return WrittenByAnother(bucket_->place().url, name);
}

absl::Status BucketDisk::PutSnapshot(const std::string& name, const S3Content& content) {
  const std::string key = SnapshotKey(name, ToHex(content.sha256));
  const absl::StatusOr<S3Object> there = bucket_->Head(key);
  if (!there.ok() && !absl::IsNotFound(there.status()))
    return AsDiskError(DiskOperation::kPut, there.status());
  if (there.ok()) return absl::OkStatus();
  return AsDiskError(DiskOperation::kPut, bucket_->Put(key, content).status());
}

// A leader replaces whatever is there: of a process that led before and was slow to end, nothing
// counts that it has written since. The epoch must be the one that this process has read.
absl::Status BucketDisk::Replace(const std::string& name, const std::string& path,
                                 const S3Content& content) {
  const absl::StatusOr<S3Object> before = Look(name);
  if (absl::IsNotFound(before.status())) return PutNew(name, path, content);
  if (!before.ok()) return AsDiskError(DiskOperation::kPut, before.status());
  if (before->sha256 == ToHex(content.sha256)) return absl::OkStatus();
  if (epoch_sha256().empty()) {
    const absl::StatusOr<Sha256Digest> ours = Sha256OfFile(path);
    if (!ours.ok() || before->sha256 != ToHex(*ours))
      return FencedError(absl::StrCat(bucket_->place().url, "/", name));
  }
  // AlreadyExists: it was replaced meanwhile.
  return AsDiskError(DiskOperation::kPut,
                     bucket_->Put(name, content, S3Condition::Matches(before->etag)).status());
}

absl::Status BucketDisk::Link(const std::string& from, const std::string& to) {
  const std::optional<std::string> name = StoredName(data_dir_, to);
  if (!name) return local_->Link(from, to);
  const absl::StatusOr<S3Content> content = ContentOfFile(from);
  if (!content.ok()) return AsDiskError(DiskOperation::kPut, content.status());
  DISTRO_RETURN_IF_ERROR(Store(*name, [&] {
    return IsSnapshotName(*name) ? PutSnapshot(*name, *content) : PutNew(*name, to, *content);
  }));
  absl::Status linked = local_->Link(from, to);
  // Its writer would take back a name that it finds after an error.
  if (!linked.ok()) local_->Unlink(to).IgnoreError();
  return absl::IsAlreadyExists(linked) ? local_->Link(from, to) : linked;
}

absl::Status BucketDisk::Rename(const std::string& from, const std::string& to) {
  const std::optional<std::string> name = StoredName(data_dir_, to);
  if (!name) return local_->Rename(from, to);
  const absl::StatusOr<S3Content> content = ContentOfFile(from);
  if (!content.ok()) return AsDiskError(DiskOperation::kPut, content.status());
  DISTRO_RETURN_IF_ERROR(Store(*name, [&] {
    return Exists(to) ? Replace(*name, to, *content) : PutNew(*name, to, *content);
  }));
  if (*name == kEpochKey) {  // this process leads now
    absl::MutexLock lock(&mu_);
    epoch_sha256_ = ToHex(content->sha256);
  }
  if (*name != kSnapshotsKey) {
    DISTRO_RETURN_IF_ERROR(local_->Rename(from, to));
    return RoundOfKey(*name) ? NotePack(to) : absl::OkStatus();
  }
  const auto before = ReadSnapshotList(data_dir_);
  DISTRO_RETURN_IF_ERROR(local_->Rename(from, to));
  if (before.ok()) DeleteDropped(*before);
  return absl::OkStatus();
}

bool BucketDisk::IsPacked(RoundId round) const {
  absl::MutexLock lock(&mu_);
  return IsInsidePack(packs_, round);
}

absl::Status BucketDisk::NotePack(const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(const auto pack, RecordReader::Open(path, RecordKind::kRound));
  absl::MutexLock lock(&mu_);
  packs_[pack->round().value()] = pack->end().value();
  return absl::OkStatus();
}

// No process lists again what a newer list has dropped, so this deletes nothing that another one
// needs, however late.
void BucketDisk::DeleteDropped(const std::vector<v1::SnapshotInfo>& before) {
  const auto now = ReadSnapshotList(data_dir_);
  if (!now.ok()) return;
  std::set<std::string> kept;
  for (const v1::SnapshotInfo& info : *now) kept.insert(SnapshotKey(info));
  for (const v1::SnapshotInfo& info : before) {
    if (!kept.contains(SnapshotKey(info)))
      bucket_->Delete(SnapshotKey(info)).IgnoreError();  // else at the next start
  }
}

absl::Status BucketDisk::Unlink(const std::string& path) {
  const std::optional<std::string> name = StoredName(data_dir_, path);
  const std::optional<RoundId> round = name ? RoundOfKey(*name) : std::nullopt;
  if (round && IsPacked(*round) && Exists(path)) {
    DISTRO_RETURN_IF_ERROR(CheckLeader(DiskOperation::kDelete));
    DISTRO_RETURN_IF_ERROR(AsDiskError(DiskOperation::kDelete, bucket_->Delete(*name)));
  }
  return local_->Unlink(path);
}

}  // namespace distro::server
