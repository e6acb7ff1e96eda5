#include "server/log/incoming_file.h"

#include <errno.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/model/checkpoint/initial_snapshot.h"

namespace distro::server {
namespace {

absl::Status SyncFile(Disk* disk, const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(const FileHandle file, OpenToRead(path));
  return disk->Fsync(file.fd(), path);
}

absl::StatusOr<FileHandle> OpenOrCreate(Disk* disk, const std::string& path) {
  absl::StatusOr<FileHandle> file = OpenOwn(path, Create::kNo);
  if (!absl::IsNotFound(file.status())) return file;
  DISTRO_ASSIGN_OR_RETURN(const int fd, disk->Create(path));
  return FileHandle(fd);
}

absl::Status RemoveAndRefuse(Disk* disk, const std::string& path, absl::string_view why) {
  DISTRO_RETURN_IF_ERROR(disk->Unlink(path));
  return absl::InvalidArgumentError(
      absl::StrCat("snapshot: ", why, ": the upload was removed: send it again"));
}

}  // namespace

absl::StatusOr<uint64_t> FileSizeOrZero(const std::string& path) {
  struct stat about;
  if (stat(path.c_str(), &about) == 0) return static_cast<uint64_t>(about.st_size);
  if (errno == ENOENT) return 0;
  return ErrnoToStatus(errno, "stat", path);
}

absl::Status AppendToFile(Disk* disk, const std::string& path, uint64_t total, uint64_t offset,
                          absl::string_view data) {
  DISTRO_ASSIGN_OR_RETURN(const uint64_t size, FileSizeOrZero(path));
  if (offset != size) {
    return absl::InvalidArgumentError(
        absl::StrCat("snapshot: data at offset ", offset, " where ", size, " comes next"));
  }
  if (size > total || data.size() > total - size) {
    return absl::InvalidArgumentError(absl::StrCat("snapshot: ", data.size(), " bytes at offset ",
                                                   offset, " go beyond its ", total));
  }
  DISTRO_ASSIGN_OR_RETURN(const FileHandle file, OpenOrCreate(disk, path));
  return disk->Write(file.fd(), path, offset, data);
}

absl::Status CheckIncoming(Disk* disk, const std::string& path, uint64_t bytes,
                           const Sha256Digest& sha256) {
  DISTRO_ASSIGN_OR_RETURN(const uint64_t size, FileSizeOrZero(path));
  if (size < bytes || bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("snapshot: ", size, " of ", bytes, " bytes are there: send the rest"));
  }
  if (size > bytes) {
    return RemoveAndRefuse(disk, path,
                           absl::StrCat(size, " bytes were sent, ", bytes, " were announced"));
  }
  if (absl::Status synced = SyncFile(disk, path); !synced.ok()) {
    disk->Unlink(path).IgnoreError();
    return synced;
  }
  DISTRO_ASSIGN_OR_RETURN(const Sha256Digest actual, Sha256OfFile(path));
  if (actual == sha256) return absl::OkStatus();
  return RemoveAndRefuse(
      disk, path,
      absl::StrCat("its SHA-256 is ", ToHex(actual), ", ", ToHex(sha256), " was announced"));
}

}  // namespace distro::server
