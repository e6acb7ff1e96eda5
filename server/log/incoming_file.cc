#include "server/log/incoming_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/replica/initial_snapshot.h"

namespace distro::server {
namespace {

absl::Status SyncFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoToStatus(errno, "open", path);
  const auto closer = absl::MakeCleanup([fd] { close(fd); });
  if (fsync(fd) != 0) return ErrnoToStatus(errno, "fsync", path);
  return absl::OkStatus();
}

absl::Status RemoveAndRefuse(const std::string& path, absl::string_view why) {
  unlink(path.c_str());
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

absl::Status AppendToFile(const std::string& path, uint64_t offset, absl::string_view data) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoToStatus(errno, "open", path);
  const auto closer = absl::MakeCleanup([fd] { close(fd); });
  struct stat about;
  if (fstat(fd, &about) != 0) return ErrnoToStatus(errno, "stat", path);
  if (offset != static_cast<uint64_t>(about.st_size)) {
    return absl::InvalidArgumentError(
        absl::StrCat("snapshot: data at offset ", offset, " where ", about.st_size, " comes next"));
  }
  while (!data.empty()) {
    const ssize_t n = pwrite(fd, data.data(), data.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoToStatus(errno, "write", path);
    data.remove_prefix(n);
    offset += n;
  }
  return absl::OkStatus();
}

absl::Status CheckIncoming(const std::string& path, uint64_t bytes, const Sha256Digest& sha256) {
  DISTRO_ASSIGN_OR_RETURN(const uint64_t size, FileSizeOrZero(path));
  if (size < bytes || bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("snapshot: ", size, " of ", bytes, " bytes are there: send the rest"));
  }
  if (size > bytes) {
    return RemoveAndRefuse(path, absl::StrCat(size, " bytes came, ", bytes, " were announced"));
  }
  DISTRO_RETURN_IF_ERROR(SyncFile(path));
  DISTRO_ASSIGN_OR_RETURN(const Sha256Digest actual, Sha256OfFile(path));
  if (actual == sha256) return absl::OkStatus();
  return RemoveAndRefuse(
      path, absl::StrCat("its SHA-256 is ", ToHex(actual), ", ", ToHex(sha256), " was announced"));
}

}  // namespace distro::server
