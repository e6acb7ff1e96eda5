#include "server/log/snapshot_store.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "common/model/checkpoint/initial_snapshot.h"
#include "common/net/wire/framed_message.h"
#include "server/log/incoming_file.h"
#include "server/log/read_run.h"
#include "server/log/snapshot_check.h"

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

namespace {

constexpr size_t kKept = 2;        // besides the initial one
constexpr size_t kUnfinished = 2;  // uploads

// Requires 32 bytes.
Sha256Digest DigestOf(const v1::SnapshotInfo& info) {
  Sha256Digest digest;
  std::copy(info.sha256().begin(), info.sha256().end(), digest.begin());
  return digest;
}

std::string NameOf(const v1::SnapshotInfo& info) {
  return absl::StrCat("snapshot of round ", info.round());
}

// The names of the files in `dir` that end with `suffix`.
std::vector<std::filesystem::path> FilesIn(const std::string& dir, absl::string_view suffix) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator i(dir, error), end; !error && i != end;
       i.increment(error)) {
    if (absl::EndsWith(i->path().string(), suffix)) paths.push_back(i->path());
  }
  return paths;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SnapshotStore>> SnapshotStore::Open(
    const std::string& data_dir, std::shared_ptr<const RunIdentity> run, Disk* disk, Log* log) {
  std::unique_ptr<SnapshotStore> store(new SnapshotStore(data_dir, std::move(run), disk, log));
  DISTRO_RETURN_IF_ERROR(store->Load());
  return store;
}

absl::Status SnapshotStore::Load() {
  DISTRO_ASSIGN_OR_RETURN(std::vector<v1::SnapshotInfo> listed, ReadSnapshotList(data_dir_));
  RemoveUnlisted(listed);
  absl::MutexLock lock(&mu_);
  for (v1::SnapshotInfo& info : listed) {
    const absl::Status status = CheckStoredSnapshot(SnapshotPath(data_dir_, info.round()), info);
    if (!status.ok()) {
      log_->Error("snapshot left out: joiners begin with an older one until another is uploaded",
                  {{"round", info.round()}, {"error", status}});
      continue;
    }
    log_->Info("snapshot verified", {{"round", info.round()}, {"bytes", info.size_bytes()}});
    later_.push_back(std::move(info));
  }
  return absl::OkStatus();
}

std::vector<v1::SnapshotInfo> SnapshotStore::List() const {
  absl::MutexLock lock(&mu_);
  std::vector<v1::SnapshotInfo> list(later_.rbegin(), later_.rend());
  list.push_back(run_->initial_snapshot);
  return list;
}

absl::StatusOr<std::string> SnapshotStore::PathOf(absl::string_view sha256) const {
  if (sha256 == run_->initial_snapshot.sha256()) return run_->initial_snapshot_path;
  absl::MutexLock lock(&mu_);
  for (const v1::SnapshotInfo& info : later_) {
    if (info.sha256() == sha256) return SnapshotPath(data_dir_, info.round());
  }
  return absl::NotFoundError("snapshot: none with this SHA-256 is kept");
}

absl::Status SnapshotStore::CheckAnnounced(const v1::SnapshotInfo& info) const {
  if (info.sha256().size() != sizeof(Sha256Digest) || info.round() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(NameOf(info), ": its SHA-256 has ",
                                                   info.sha256().size(),
                                                   " bytes, not 32, or its round is 0"));
  }
  if (info.size_bytes() != run_->initial_snapshot.size_bytes()) {
    return absl::InvalidArgumentError(absl::StrCat(NameOf(info), ": ", info.size_bytes(),
                                                   " bytes, every snapshot of this run has ",
                                                   run_->initial_snapshot.size_bytes()));
  }
  if (info.round() <= run_->initial_snapshot.round()) {
    return absl::FailedPreconditionError(
        absl::StrCat(NameOf(info), ": not newer than the initial snapshot, of round ",
                     run_->initial_snapshot.round()));
  }
  absl::MutexLock lock(&mu_);
  for (const v1::SnapshotInfo& listed : later_) {
    if (listed.round() != info.round() || listed.sha256() == info.sha256()) continue;
    return absl::AlreadyExistsError(absl::StrCat(NameOf(info), ": another one is stored"));
  }
  if (later_.size() < kKept || info.round() >= later_.front().round()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(NameOf(info),
                                                    ": older than those that are kept, from round ",
                                                    later_.front().round(), " on"));
}

bool SnapshotStore::IsListed(const v1::SnapshotInfo& info) const {
  absl::MutexLock lock(&mu_);
  return std::any_of(later_.begin(), later_.end(), [&](const v1::SnapshotInfo& listed) {
    return listed.sha256() == info.sha256();
  });
}

absl::StatusOr<uint64_t> SnapshotStore::IncomingBytes(const v1::SnapshotInfo& info) const {
  DISTRO_RETURN_IF_ERROR(CheckAnnounced(info));
  if (IsListed(info)) return info.size_bytes();
  return FileSizeOrZero(IncomingPath(info));
}

absl::Status SnapshotStore::AppendIncoming(const v1::SnapshotInfo& info, uint64_t offset,
                                           absl::string_view data) {
  DISTRO_RETURN_IF_ERROR(CheckAnnounced(info));
  if (IsListed(info)) {
    return absl::InvalidArgumentError(absl::StrCat(NameOf(info), ": is stored: nothing to send"));
  }
  absl::MutexLock lock(&incoming_mu_);
  const std::string path = IncomingPath(info);
  if (offset == 0) DISTRO_RETURN_IF_ERROR(MakeRoomFor(path));
  return AppendToFile(disk_, path, info.size_bytes(), offset, data);
}

absl::Status SnapshotStore::MakeRoomFor(const std::string& incoming) {
  std::vector<std::filesystem::path> others = FilesIn(data_dir_ + "/incoming", ".part");
  std::erase(others, incoming);
  std::error_code ignored;
  const auto written = [&ignored](const std::filesystem::path& path) {
    return std::filesystem::last_write_time(path, ignored);
  };
  std::sort(others.begin(), others.end(),
            [&](const auto& a, const auto& b) { return written(a) < written(b); });
  for (size_t i = 0; i + kUnfinished <= others.size(); ++i) {
    DISTRO_RETURN_IF_ERROR(RemoveIfThere(disk_, others[i].string()));
    log_->Warning("unfinished upload of a snapshot removed", {{"path", others[i].string()}});
  }
  return absl::OkStatus();
}

absl::Status SnapshotStore::Adopt(const v1::SnapshotInfo& info) {
  absl::MutexLock adopting(&adopt_mu_);
  DISTRO_RETURN_IF_ERROR(CheckAnnounced(info));
  if (IsListed(info)) return absl::OkStatus();
  const std::string incoming = IncomingPath(info);
  DISTRO_RETURN_IF_ERROR(
      AsUpload(CheckIncoming(disk_, incoming, info.size_bytes(), DigestOf(info)), incoming));
  if (absl::Status status = CheckParameters(incoming, info); !status.ok()) {
    if (absl::IsInvalidArgument(status)) RemoveIfThere(disk_, incoming).IgnoreError();
    return status;
  }
  return Publish(incoming, info);
}

void SnapshotStore::LeaveOut(absl::string_view sha256) {
  absl::MutexLock lock(&mu_);
  std::erase_if(later_, [&](const v1::SnapshotInfo& info) { return info.sha256() == sha256; });
}

absl::Status SnapshotStore::CheckParameters(const std::string& path,
                                            const v1::SnapshotInfo& info) const {
  const absl::StatusOr<uint64_t> hash = CheckedStateHash(path, *run_->layout);
  if (!hash.ok()) return AsUpload(hash.status(), path);
  if (*hash == info.state_hash()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(NameOf(info), ": its state hash is ", ToHex(*hash),
                                                 ", ", ToHex(info.state_hash()),
                                                 " was announced: the upload was removed"));
}

absl::Status SnapshotStore::Publish(const std::string& incoming, const v1::SnapshotInfo& info) {
  const std::string path = SnapshotPath(data_dir_, info.round());
  DISTRO_RETURN_IF_ERROR(RemoveIfThere(disk_, path));  // of an attempt that did not finish
  DISTRO_RETURN_IF_ERROR(disk_->Link(incoming, path));
  DISTRO_RETURN_IF_ERROR(disk_->FsyncFolder(data_dir_ + "/snapshots"));
  std::vector<v1::SnapshotInfo> listed;
  {
    absl::MutexLock lock(&mu_);
    listed = later_;
  }
  listed.push_back(info);
  std::sort(listed.begin(), listed.end(),
            [](const auto& a, const auto& b) { return a.round() < b.round(); });
  if (listed.size() > kKept) listed.erase(listed.begin());
  v1::StoredSnapshots stored;
  for (const v1::SnapshotInfo& snapshot : listed) *stored.add_snapshots() = snapshot;
  DISTRO_RETURN_IF_ERROR(
      WriteAtomically(disk_, SnapshotListPath(data_dir_), EncodeSnapshotsFile(stored)));
  {
    absl::MutexLock lock(&mu_);
    later_ = listed;
  }
  log_->Info("snapshot stored", {{"round", info.round()},
                                 {"bytes", info.size_bytes()},
                                 {"state_hash", ToHex(info.state_hash())}});
  disk_->Unlink(incoming).IgnoreError();  // a second name of the snapshot
  RemoveUnlisted(listed);
  return absl::OkStatus();
}

void SnapshotStore::RemoveUnlisted(const std::vector<v1::SnapshotInfo>& listed) {
  for (const auto& path : FilesIn(data_dir_ + "/snapshots", ".safetensors")) {
    const bool kept = path == run_->initial_snapshot_path ||
                      std::any_of(listed.begin(), listed.end(), [&](const auto& info) {
                        return path == SnapshotPath(data_dir_, info.round());
                      });
    if (kept) continue;
    const absl::Status status = disk_->Unlink(path.string());
    if (status.ok()) log_->Info("snapshot removed", {{"path", path.string()}});
    if (!status.ok()) log_->Warning("snapshot not removed", {{"error", status}});
  }
}

std::string SnapshotStore::IncomingPath(const v1::SnapshotInfo& info) const {
  return absl::StrCat(data_dir_, "/incoming/", ToHex(DigestOf(info)), ".part");
}

}  // namespace distro::server
