#include "server/log/disk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/base/disk_space.h"
#include "common/base/file_calls.h"
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
                                         DiskOperation::kUnlink,       DiskOperation::kFsyncFolder,
                                         DiskOperation::kPut,          DiskOperation::kDelete};

// Of a call that returns 0 or an errno.
absl::Status Checked(DiskOperation operation, int error_number, absl::string_view path) {
  return error_number == 0 ? absl::OkStatus() : DiskError(operation, error_number, path);
}

class RealDisk final : public Disk {
 public:
  absl::Status CreateFolder(const std::string& path) override {
    return Checked(DiskOperation::kCreateFolder, MakeFolders(path), path);
  }

  absl::StatusOr<int> Create(const std::string& path) override {
    FileHandle file;
    DISTRO_RETURN_IF_ERROR(Checked(DiskOperation::kCreate, CreateNew(path, 0644, &file), path));
    return file.Release();
  }

  absl::Status Write(int fd, const std::string& path, uint64_t offset,
                     absl::string_view bytes) override {
    return Checked(DiskOperation::kWrite, WriteAllAt(fd, offset, bytes), path);
  }

  absl::Status Fsync(int fd, const std::string& path) override {
    return Checked(DiskOperation::kFsync, fsync(fd) == 0 ? 0 : errno, path);
  }

  absl::Status Link(const std::string& from, const std::string& to) override {
    return Checked(DiskOperation::kLink, GiveNewName(from, to), to);
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    const int error = rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
    return Checked(DiskOperation::kRename, error, to);
  }

  absl::Status Unlink(const std::string& path) override {
    return Checked(DiskOperation::kUnlink, unlink(path.c_str()) == 0 ? 0 : errno, path);
  }

  absl::Status FsyncFolder(const std::string& path) override {
    return Checked(DiskOperation::kFsyncFolder, SyncNames(path), path);
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
    case DiskOperation::kPut:
      return "put";
    case DiskOperation::kDelete:
      return "delete";
  }
  return "";
}

absl::Status DiskError(DiskOperation operation, int error_number, absl::string_view path) {
  const absl::string_view name = DiskOperationName(operation);
  const std::string text = DiskErrorText(error_number, path);
  std::string message = absl::StrCat(name, " ", path, ": ", text);
  if (operation == DiskOperation::kLink && error_number == EOPNOTSUPP)
    absl::StrAppend(&message, ": ", LacksText("hard links, and no rename that replaces nothing"));
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

absl::Status StoreError(DiskOperation operation, const absl::Status& status) {
  absl::Status error = ErrorWithReason(absl::StatusCode::kUnavailable, kReason, status.message());
  error.SetPayload(kOperationUrl, absl::Cord(DiskOperationName(operation)));
  error.SetPayload(kErrorUrl, absl::Cord(status.message()));
  return error;
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
  return disk->FsyncFolder(FolderOf(path));
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

std::optional<FileId> FileIdOf(int fd) {
  struct stat about;
  if (fstat(fd, &about) != 0) return std::nullopt;
  return FileId{about.st_dev, about.st_ino};
}

}  // namespace distro::server
