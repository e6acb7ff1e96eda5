// A disk with faults and hooks of a test. Operations without a fault are executed on the underlying
// disk. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/log/disk.h"

namespace distro::testing {

// One requested operation.
struct DiskCall {
  server::DiskOperation operation;
  std::string path;  // of kLink and kRename: the new name
};

// Which operations fail, and how.
struct DiskFault {
  std::optional<server::DiskOperation> operation = std::nullopt;  // not set: any
  std::string path_part = "";                                     // the path holds it
  int error_number = 28;                                          // ENOSPC
  int after = 0;   // so many matching operations succeed first
  int times = -1;  // then so many fail; -1: all
  // A failing write writes the first half of its bytes; any other failing operation is executed,
  // but reports an error.
  bool half_done = false;
};

class FaultyDisk final : public server::Disk {
 public:
  // Called before each operation, also a failing one; `n` counts all operations from 0. No lock is
  // held, so it may wait, read the folder, or end the process (SIGKILL).
  using Hook = std::function<void(const DiskCall& call, uint64_t n)>;

  explicit FaultyDisk(server::Disk* below = server::Disk::Real()) : below_(below) {}

  // Adds a fault; the first one that matches an operation applies.
  void Fail(DiskFault fault);
  // Lets the n-th operation from now fail (0: the next one), of any kind.
  void FailNth(int n, int error_number = 28);
  // Removes all faults.
  void Heal();
  void SetHook(Hook hook);

  // All operations so far, also those that failed.
  std::vector<DiskCall> calls() const;
  int count(server::DiskOperation operation) const;

  absl::Status CreateFolder(const std::string& path) override;
  absl::StatusOr<int> Create(const std::string& path) override;
  absl::Status Write(int fd, const std::string& path, uint64_t offset,
                     absl::string_view bytes) override;
  absl::Status Fsync(int fd, const std::string& path) override;
  absl::Status Link(const std::string& from, const std::string& to) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Unlink(const std::string& path) override;
  absl::Status FsyncFolder(const std::string& path) override;

 private:
  // Records the call; returns its fault, if any.
  std::optional<DiskFault> Meet(server::DiskOperation operation, const std::string& path);
  absl::Status Run(server::DiskOperation operation, const std::string& path,
                   const std::function<absl::Status()>& act);

  server::Disk* const below_;
  mutable absl::Mutex mu_;
  std::vector<DiskFault> faults_ ABSL_GUARDED_BY(mu_);
  std::vector<DiskCall> calls_ ABSL_GUARDED_BY(mu_);
  Hook hook_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::testing
