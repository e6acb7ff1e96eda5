#include "server/log/log_file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace distro::server {

absl::StatusOr<LogFile> LogFile::Open(const std::string& path) {
  absl::StatusOr<FileHandle> file = OpenToRead(path);
  if (absl::IsInvalidArgument(file.status())) return absl::DataLossError(file.status().message());
  DISTRO_RETURN_IF_ERROR(file.status());
  return LogFile(*std::move(file), path, nullptr);
}

absl::StatusOr<LogFile> LogFile::Create(Disk* disk, const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(const int fd, disk->Create(path));
  return LogFile(FileHandle(fd), path, disk);
}

LogFile::LogFile(LogFile&& other) noexcept
    : file_(std::move(other.file_)), path_(std::exchange(other.path_, {})), disk_(other.disk_) {}

LogFile& LogFile::operator=(LogFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(path_, other.path_);
  std::swap(disk_, other.disk_);
  return *this;
}

absl::StatusOr<uint64_t> LogFile::Size() const {
  struct stat about;
  if (fstat(file_.fd(), &about) != 0) return ErrnoToStatus(errno, "stat", path_);
  return static_cast<uint64_t>(about.st_size);
}

absl::StatusOr<std::string> LogFile::ReadAt(uint64_t offset, uint64_t size) const {
  std::string bytes(size, '\0');
  for (uint64_t done = 0; done < size;) {
    const ssize_t n = pread(file_.fd(), bytes.data() + done, size - done, offset + done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoToStatus(errno, "read", path_);
    if (n == 0) {
      return absl::DataLossError(absl::StrCat(path_, ": ends at byte ", offset + done, ", ", size,
                                              " bytes from ", offset, " on are needed"));
    }
    done += n;
  }
  return bytes;
}

absl::Status LogFile::WriteAt(uint64_t offset, absl::string_view bytes) {
  return disk_->Write(file_.fd(), path_, offset, bytes);
}

absl::Status LogFile::Sync() { return disk_->Fsync(file_.fd(), path_); }

}  // namespace distro::server
