#include "common/base/line_file.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace distro {
namespace {

absl::StatusOr<FileHandle> OpenForAppend(const std::string& path) {
  return OpenOwn(path, Create::kIfAbsent, Accept::kFilesAndDevices);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LineFile>> LineFile::Open(const std::string& path,
                                                         uint64_t max_bytes) {
  DISTRO_ASSIGN_OR_RETURN(FileHandle opened, OpenForAppend(path));
  auto file = absl::WrapUnique(new LineFile(path, max_bytes, std::move(opened)));
  DISTRO_RETURN_IF_ERROR(file->CutTornLine());
  return file;
}

// From the end backwards to the last line feed.
absl::Status LineFile::CutTornLine() {
  struct stat about;
  if (fstat(file_.fd(), &about) != 0) return ErrnoToStatus(errno, "stat", path_);
  is_regular_ = S_ISREG(about.st_mode);
  if (!is_regular_) return absl::OkStatus();
  uint64_t end = static_cast<uint64_t>(about.st_size);
  std::array<char, 4096> piece;
  size_ = 0;
  while (end > 0 && size_ == 0) {
    const uint64_t begin = end - std::min<uint64_t>(end, piece.size());
    const ssize_t got = pread(file_.fd(), piece.data(), end - begin, static_cast<off_t>(begin));
    if (got != static_cast<ssize_t>(end - begin)) return ErrnoToStatus(errno, "read", path_);
    const size_t last = absl::string_view(piece.data(), end - begin).rfind('\n');
    if (last != absl::string_view::npos) size_ = begin + last + 1;
    end = begin;
  }
  if (ftruncate(file_.fd(), static_cast<off_t>(size_)) != 0)
    return ErrnoToStatus(errno, "cut", path_);
  return absl::OkStatus();
}

absl::Status LineFile::Rotate() {
  const std::string older = absl::StrCat(path_, ".1");
  // There is none after a rotation whose new file could not be made.
  if (rename(path_.c_str(), older.c_str()) != 0 && errno != ENOENT)
    return ErrnoToStatus(errno, "rename to", older);
  DISTRO_ASSIGN_OR_RETURN(file_, OpenForAppend(path_));
  size_ = 0;
  return absl::OkStatus();
}

absl::Status LineFile::Append(absl::string_view line) {
  const std::string bytes = absl::StrCat(line, "\n");
  const bool full = is_regular_ && size_ > 0 && size_ + bytes.size() > max_bytes_;
  if (full) DISTRO_RETURN_IF_ERROR(Rotate());
  const int error = WriteAllAt(file_.fd(), size_, bytes);
  if (error == 0) {
    if (is_regular_) size_ += bytes.size();
    return absl::OkStatus();
  }
  if (is_regular_ && ftruncate(file_.fd(), static_cast<off_t>(size_)) != 0)
    return ErrnoToStatus(errno, "cut", path_);
  return ErrnoToStatus(error, "write", path_);
}

}  // namespace distro
