#include "common/base/line_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace distro {
namespace {

int OpenForAppend(const std::string& path) {
  return open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LineFile>> LineFile::Open(const std::string& path,
                                                         uint64_t max_bytes) {
  const int fd = OpenForAppend(path);
  if (fd < 0) return ErrnoToStatus(errno, "open", path);
  auto file = absl::WrapUnique(new LineFile(path, max_bytes, fd));
  DISTRO_RETURN_IF_ERROR(file->CutTornLine());
  return file;
}

LineFile::~LineFile() {
  if (fd_ >= 0) close(fd_);
}

// From the end backwards to the last line feed.
absl::Status LineFile::CutTornLine() {
  struct stat about;
  if (fstat(fd_, &about) != 0) return ErrnoToStatus(errno, "stat", path_);
  is_regular_ = S_ISREG(about.st_mode);
  if (!is_regular_) return absl::OkStatus();
  uint64_t end = static_cast<uint64_t>(about.st_size);
  std::array<char, 4096> piece;
  size_ = 0;
  while (end > 0 && size_ == 0) {
    const uint64_t begin = end - std::min<uint64_t>(end, piece.size());
    const ssize_t got = pread(fd_, piece.data(), end - begin, static_cast<off_t>(begin));
    if (got != static_cast<ssize_t>(end - begin)) return ErrnoToStatus(errno, "read", path_);
    const size_t last = absl::string_view(piece.data(), end - begin).rfind('\n');
    if (last != absl::string_view::npos) size_ = begin + last + 1;
    end = begin;
  }
  if (ftruncate(fd_, static_cast<off_t>(size_)) != 0) return ErrnoToStatus(errno, "cut", path_);
  return absl::OkStatus();
}

absl::Status LineFile::Rotate() {
  const std::string older = absl::StrCat(path_, ".1");
  if (rename(path_.c_str(), older.c_str()) != 0) return ErrnoToStatus(errno, "rename to", older);
  const int fd = OpenForAppend(path_);
  if (fd < 0) return ErrnoToStatus(errno, "open", path_);
  close(fd_);
  fd_ = fd;
  size_ = 0;
  return absl::OkStatus();
}

absl::Status LineFile::Append(absl::string_view line) {
  const std::string bytes = absl::StrCat(line, "\n");
  const bool full = is_regular_ && size_ > 0 && size_ + bytes.size() > max_bytes_;
  if (full) DISTRO_RETURN_IF_ERROR(Rotate());
  const ssize_t written = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(size_));
  if (written == static_cast<ssize_t>(bytes.size())) {
    if (is_regular_) size_ += bytes.size();
    return absl::OkStatus();
  }
  const int error = written < 0 ? errno : ENOSPC;
  if (is_regular_ && ftruncate(fd_, static_cast<off_t>(size_)) != 0)
    return ErrnoToStatus(errno, "cut", path_);
  return ErrnoToStatus(error, "write", path_);
}

}  // namespace distro
