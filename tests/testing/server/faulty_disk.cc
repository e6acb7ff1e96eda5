#include "tests/testing/server/faulty_disk.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"

namespace distro::testing {

using server::DiskError;
using server::DiskOperation;

void FaultyDisk::Fail(DiskFault fault) {
  absl::MutexLock lock(&mu_);
  faults_.push_back(std::move(fault));
}

void FaultyDisk::FailNth(int n, int error_number) {
  Fail({.error_number = error_number, .after = n, .times = 1});
}

void FaultyDisk::Heal() {
  absl::MutexLock lock(&mu_);
  faults_.clear();
}

void FaultyDisk::SetHook(Hook hook) {
  absl::MutexLock lock(&mu_);
  hook_ = std::move(hook);
}

std::vector<DiskCall> FaultyDisk::calls() const {
  absl::MutexLock lock(&mu_);
  return calls_;
}

int FaultyDisk::count(DiskOperation operation) const {
  absl::MutexLock lock(&mu_);
  return static_cast<int>(
      std::count_if(calls_.begin(), calls_.end(),
                    [operation](const DiskCall& call) { return call.operation == operation; }));
}

std::optional<DiskFault> FaultyDisk::Meet(DiskOperation operation, const std::string& path) {
  Hook hook;
  uint64_t n;
  {
    absl::MutexLock lock(&mu_);
    n = calls_.size();
    calls_.push_back({operation, path});
    hook = hook_;
  }
  if (hook) hook({operation, path}, n);
  absl::MutexLock lock(&mu_);
  for (DiskFault& fault : faults_) {
    if (fault.operation.value_or(operation) != operation) continue;
    if (!absl::StrContains(path, fault.path_part) || fault.times == 0) continue;
    if (fault.after > 0) {
      --fault.after;
      continue;
    }
    if (fault.times > 0) --fault.times;
    return fault;
  }
  return std::nullopt;
}

absl::Status FaultyDisk::Run(DiskOperation operation, const std::string& path,
                             const std::function<absl::Status()>& act) {
  const std::optional<DiskFault> fault = Meet(operation, path);
  if (!fault) return act();
  if (fault->half_done) act().IgnoreError();
  return DiskError(operation, fault->error_number, path);
}

absl::Status FaultyDisk::CreateFolder(const std::string& path) {
  return Run(DiskOperation::kCreateFolder, path, [&] { return below_->CreateFolder(path); });
}

absl::StatusOr<int> FaultyDisk::Create(const std::string& path) {
  const std::optional<DiskFault> fault = Meet(DiskOperation::kCreate, path);
  if (!fault) return below_->Create(path);
  if (fault->half_done) {
    const absl::StatusOr<int> fd = below_->Create(path);
    if (fd.ok()) close(*fd);
  }
  return DiskError(DiskOperation::kCreate, fault->error_number, path);
}

absl::Status FaultyDisk::Write(int fd, const std::string& path, uint64_t offset,
                               absl::string_view bytes) {
  const std::optional<DiskFault> fault = Meet(DiskOperation::kWrite, path);
  if (!fault) return below_->Write(fd, path, offset, bytes);
  if (fault->half_done) {
    below_->Write(fd, path, offset, bytes.substr(0, bytes.size() / 2)).IgnoreError();
  }
  return DiskError(DiskOperation::kWrite, fault->error_number, path);
}

absl::Status FaultyDisk::Fsync(int fd, const std::string& path) {
  return Run(DiskOperation::kFsync, path, [&] { return below_->Fsync(fd, path); });
}

absl::Status FaultyDisk::Link(const std::string& from, const std::string& to) {
  return Run(DiskOperation::kLink, to, [&] { return below_->Link(from, to); });
}

absl::Status FaultyDisk::Rename(const std::string& from, const std::string& to) {
  return Run(DiskOperation::kRename, to, [&] { return below_->Rename(from, to); });
}

absl::Status FaultyDisk::Unlink(const std::string& path) {
  return Run(DiskOperation::kUnlink, path, [&] { return below_->Unlink(path); });
}

absl::Status FaultyDisk::FsyncFolder(const std::string& path) {
  return Run(DiskOperation::kFsyncFolder, path, [&] { return below_->FsyncFolder(path); });
}

}  // namespace distro::testing
