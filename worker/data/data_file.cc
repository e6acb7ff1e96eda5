#include "worker/data/data_file.h"

#include <errno.h>
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

// Each shard keeps a file open, and the usual limit is 1024.
void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));
}

}  // namespace

absl::StatusOr<DataFile> DataFile::Open(const std::string& path) {
  absl::StatusOr<FileHandle> handle = OpenToRead(path);
  if (absl::IsResourceExhausted(handle.status())) {
    RaiseFileLimit();
    handle = OpenToRead(path);
  }
  if (!handle.ok()) return handle.status();
  DataFile file(path, *std::move(handle));
  DISTRO_ASSIGN_OR_RETURN(file.version_, file.CurrentVersion());
  return file;
}

absl::Status DataFile::Read(uint64_t offset, absl::Span<char> out) const {
  while (!out.empty()) {
    const ssize_t n = pread(handle_.fd(), out.data(), out.size(), static_cast<off_t>(offset));
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
  if (fstat(handle_.fd(), &about) != 0) return ErrnoToStatus(errno, "stat", path_);
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
