#include "worker/data/data_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/utc_time.h"

namespace distro::worker {
namespace {

// A FIFO is opened without a writer, and found to be no regular file.
int OpenToRead(const std::string& path) {
  return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

// Each shard keeps a file open, and the usual limit is 1024.
void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));
}

}  // namespace

absl::StatusOr<DataFile> DataFile::Open(const std::string& path) {
  int fd = OpenToRead(path);
  if (fd < 0 && errno == EMFILE) {
    RaiseFileLimit();
    fd = OpenToRead(path);
  }
  if (fd < 0) return ErrnoToStatus(errno, "open", path);
  DataFile file(path, fd);
  DISTRO_ASSIGN_OR_RETURN(file.version_, file.CurrentVersion());
  return file;
}

DataFile::~DataFile() {
  if (fd_ >= 0) close(fd_);
}

DataFile::DataFile(DataFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), version_(other.version_) {}

absl::Status DataFile::Read(uint64_t offset, absl::Span<char> out) const {
  while (!out.empty()) {
    const ssize_t n = pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoToStatus(errno, "read", path_);
    if (n == 0) break;  // it was shortened
    out.remove_prefix(n);
    offset += n;
  }
  return CheckUnchanged();  // after the bytes were read, or they could be newer than the check
}

absl::StatusOr<DataFile::Version> DataFile::CurrentVersion() const {
  struct stat about;
  if (fstat(fd_, &about) != 0) return ErrnoToStatus(errno, "stat", path_);
  if (!S_ISREG(about.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(path_, ": is not a regular file"));
  return Version{.size = static_cast<uint64_t>(about.st_size),
                 .written = absl::TimeFromTimespec(about.st_mtim)};
}

absl::Status DataFile::CheckUnchanged() const {
  DISTRO_ASSIGN_OR_RETURN(const Version now, CurrentVersion());
  if (now == version_) return absl::OkStatus();
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, "data_changed",
      absl::StrCat(path_, ": was written to while it was read: it had ", version_.size,
                   " bytes of ", UtcText(version_.written), ", and has ", now.size, " of ",
                   UtcText(now.written),
                   ": start the worker again when the file is whole; give changed data a new name, "
                   "and move it into place"));
}

}  // namespace distro::worker
