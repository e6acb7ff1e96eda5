#include "server/log/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/base/disk_space.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"

namespace distro::server {
namespace {

constexpr absl::string_view kReason = "disk";
constexpr absl::string_view kOperationUrl = "distro/disk_operation";
constexpr absl::string_view kErrorUrl = "distro/disk_error";
constexpr DiskOperation kOperations[] = {DiskOperation::kCreateFolder, DiskOperation::kCreate,
                                         DiskOperation::kWrite,        DiskOperation::kFsync,
                                         DiskOperation::kLink,         DiskOperation::kRename,
                                         DiskOperation::kUnlink,       DiskOperation::kFsyncFolder};

// Of a system call that returns 0 when it succeeded.
absl::Status Checked(DiskOperation operation, int result, absl::string_view path) {
  return result == 0 ? absl::OkStatus() : DiskError(operation, errno, path);
}

class RealDisk final : public Disk {
 public:
  absl::Status CreateFolder(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (!error) return absl::OkStatus();
    return DiskError(DiskOperation::kCreateFolder, error.value(), path);
  }

  absl::StatusOr<int> Create(const std::string& path) override {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) return DiskError(DiskOperation::kCreate, errno, path);
    return fd;
  }

  absl::Status Write(int fd, const std::string& path, uint64_t offset,
                     absl::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return DiskError(DiskOperation::kWrite, errno, path);
      bytes.remove_prefix(n);
      offset += n;
    }
    return absl::OkStatus();
  }

  absl::Status Fsync(int fd, const std::string& path) override {
    return Checked(DiskOperation::kFsync, fsync(fd), path);
  }

  absl::Status Link(const std::string& from, const std::string& to) override {
    return Checked(DiskOperation::kLink, link(from.c_str(), to.c_str()), to);
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    return Checked(DiskOperation::kRename, rename(from.c_str(), to.c_str()), to);
  }

  absl::Status Unlink(const std::string& path) override {
    return Checked(DiskOperation::kUnlink, unlink(path.c_str()), path);
  }

  absl::Status FsyncFolder(const std::string& path) override {
    const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return DiskError(DiskOperation::kFsyncFolder, errno, path);
    const auto closer = absl::MakeCleanup([fd] { close(fd); });
    return Checked(DiskOperation::kFsyncFolder, fsync(fd), path);
  }
};

}  // namespace

absl::string_view DiskOperationName(DiskOperation operation) {
  switch (operation) {
    case DiskOperation::kCreateFolder:
      return "create_folder";
    case DiskOperation::kCreate:
      return "create";
    case DiskOperation::kWrite:
      return "write";
    case DiskOperation::kFsync:
      return "fsync";
    case DiskOperation::kLink:
      return "link";
    case DiskOperation::kRename:
      return "rename";
    case DiskOperation::kUnlink:
      return "unlink";
    case DiskOperation::kFsyncFolder:
      return "fsync_folder";
  }
  return "";
}

absl::Status DiskError(DiskOperation operation, int error_number, absl::string_view path) {
  const absl::string_view name = DiskOperationName(operation);
  const std::string text = DiskErrorText(error_number, path);
  const std::string message = absl::StrCat(name, " ", path, ": ", text);
  const bool full = error_number == ENOSPC || error_number == EDQUOT;
  absl::Status status = error_number == EEXIST ? absl::AlreadyExistsError(message)
                        : error_number == ENOENT
                            ? absl::NotFoundError(message)
                            : ErrorWithReason(full ? absl::StatusCode::kResourceExhausted
                                                   : absl::StatusCode::kUnavailable,
                                              kReason, message);
  status.SetPayload(kOperationUrl, absl::Cord(name));
  status.SetPayload(kErrorUrl, absl::Cord(text));
  return status;
}

std::optional<DiskOperation> FailedDiskOperation(const absl::Status& status) {
  const auto name = status.GetPayload(kOperationUrl);
  if (!name || ReasonOf(status) != kReason) return std::nullopt;
  for (const DiskOperation operation : kOperations) {
    if (*name == DiskOperationName(operation)) return operation;
  }
  return std::nullopt;
}

bool IsDiskError(const absl::Status& status) {
  return status.GetPayload(kOperationUrl).has_value();
}

std::string DiskErrorInShort(const absl::Status& status) {
  const auto operation = status.GetPayload(kOperationUrl);
  const auto error = status.GetPayload(kErrorUrl);
  if (!operation || !error) return absl::StatusCodeToString(status.code());
  return absl::StrCat(std::string(*operation), ": ", std::string(*error));
}

Disk* Disk::Real() {
  static Disk* const disk = new RealDisk;
  return disk;
}

absl::Status WriteAtomically(Disk* disk, const std::string& path, absl::string_view bytes) {
  const std::string temporary = absl::StrCat(path, ".tmp");
  DISTRO_RETURN_IF_ERROR(RemoveIfThere(disk, temporary));
  DISTRO_ASSIGN_OR_RETURN(const int fd, disk->Create(temporary));
  absl::Status status;
  {
    const auto closer = absl::MakeCleanup([fd] { close(fd); });
    status = disk->Write(fd, temporary, 0, bytes);
    if (status.ok()) status = disk->Fsync(fd, temporary);
  }
  if (status.ok()) status = disk->Rename(temporary, path);
  if (!status.ok()) {
    disk->Unlink(temporary).IgnoreError();
    return status;
  }
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return disk->FsyncFolder(parent.empty() ? "." : parent.string());
}

absl::Status RemoveIfThere(Disk* disk, const std::string& path) {
  absl::Status status = disk->Unlink(path);
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

std::optional<FileId> FileIdOf(const std::string& path) {
  struct stat about;
  if (stat(path.c_str(), &about) != 0) return std::nullopt;
  return FileId{about.st_dev, about.st_ino};
}

}  // namespace distro::server
