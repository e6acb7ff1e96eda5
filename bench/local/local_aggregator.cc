#include "bench/local/local_aggregator.h"

#include <stdlib.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/method/methods.h"
#include "common/model/checkpoint/initial_snapshot.h"
#include "server/log/disk.h"
#include "server/log/snapshot_check.h"

namespace distro::server {
namespace {

constexpr EpochId kEpoch(1);

class StillClock final : public Clock {
 public:
  absl::Duration MonotonicNow() const override { return absl::ZeroDuration(); }
  absl::Time WallNow() const override { return absl::UnixEpoch(); }
};

// Rounds try a failed operation again after a second, which never ends here: an error is final.
absl::Status Final(const absl::Status& status) {
  return FailedDiskOperation(status) ? absl::InternalError(status.message()) : status;
}

// Makes nothing durable: nobody needs the folder after this process.
class ScratchDisk final : public Disk {
 public:
  absl::Status CreateFolder(const std::string& path) override {
    return Final(Real()->CreateFolder(path));
  }
  absl::StatusOr<int> Create(const std::string& path) override {
    const absl::StatusOr<int> fd = Real()->Create(path);
    if (!fd.ok()) return Final(fd.status());
    return fd;
  }
  absl::Status Write(int fd, const std::string& path, uint64_t offset,
                     absl::string_view bytes) override {
    return Final(Real()->Write(fd, path, offset, bytes));
  }
  absl::Status Fsync(int /*fd*/, const std::string& /*path*/) override { return absl::OkStatus(); }
  absl::Status Link(const std::string& from, const std::string& to) override {
    return Final(Real()->Link(from, to));
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return Final(Real()->Rename(from, to));
  }
  absl::Status Unlink(const std::string& path) override { return Final(Real()->Unlink(path)); }
  absl::Status FsyncFolder(const std::string& /*path*/) override { return absl::OkStatus(); }
};

}  // namespace

absl::StatusOr<RunIdentity> MakeLocalRun(const v1::RunConfig& config,
                                         const std::string& checkpoint_dir,
                                         const std::string& snapshot_path) {
  DISTRO_ASSIGN_OR_RETURN(const InitialSnapshot snapshot,
                          PrepareInitialSnapshot(checkpoint_dir, snapshot_path));
  RunIdentity run;
  run.run_id = absl::StrCat(config.name(), "-local");
  run.config = config;
  run.model_config_json = snapshot.model_config_json;
  run.initial_snapshot_path = snapshot_path;
  DISTRO_ASSIGN_OR_RETURN(run.layout, LayoutOfSnapshot(snapshot_path, config));
  DISTRO_ASSIGN_OR_RETURN(run.method,
                          MethodOf(config).MakeRounds(config, run.layout, run.model_config_json));
  run.initial_snapshot.set_size_bytes(snapshot.bytes);
  run.initial_snapshot.set_sha256(DigestBytes(snapshot.sha256));
  DISTRO_ASSIGN_OR_RETURN(const uint64_t hash, CheckedStateHash(snapshot_path, *run.layout));
  run.initial_snapshot.set_state_hash(hash);
  return run;
}

absl::StatusOr<std::unique_ptr<LocalAggregator>> LocalAggregator::Create(const RunIdentity& run) {
  auto aggregator = absl::WrapUnique(new LocalAggregator(run));
  DISTRO_RETURN_IF_ERROR(aggregator->Open());
  return aggregator;
}

LocalAggregator::LocalAggregator(const RunIdentity& run)
    : run_(std::make_shared<const RunIdentity>(run)),
      clock_(std::make_unique<StillClock>()),
      disk_(std::make_unique<ScratchDisk>()) {}

absl::Status LocalAggregator::Open() {
  std::string folder = (std::filesystem::temp_directory_path() / "distro-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr)
    return absl::InternalError(absl::StrCat("cannot create ", folder));
  folder_ = folder;
  DISTRO_ASSIGN_OR_RETURN(round_log_, RoundLog::Open(folder_ + "/rounds", run_->layout.get(),
                                                     /*verify_payloads=*/0, disk_.get(), &log_));
  DISTRO_ASSIGN_OR_RETURN(admission_, AdmissionStore::Open(folder_ + "/admission.pb", disk_.get()));
  DISTRO_ASSIGN_OR_RETURN(snapshots_, SnapshotStore::Open(folder_, run_, disk_.get(), &log_));
  DISTRO_ASSIGN_OR_RETURN(
      rounds_,
      RoundManager::Create({.run = run_,
                            .epoch = kEpoch,
                            .files = {round_log_.get(), admission_.get(), snapshots_.get()},
                            .clock = clock_.get(),
                            .log = &log_,
                            .observer = &observer_,
                            .options = {}}));
  return absl::OkStatus();
}

LocalAggregator::~LocalAggregator() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

void LocalAggregator::Step() {
  absl::MutexLock lock(&mu_);
  if (!failure_.ok()) return;
  failure_ = rounds_->round_thread().Step().status();
  if (!failure_.ok()) rounds_->Stop();
}

absl::Status LocalAggregator::failure() const {
  absl::MutexLock lock(&mu_);
  return failure_;
}

}  // namespace distro::server
