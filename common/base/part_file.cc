#include "common/base/part_file.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace distro {
namespace {

std::string PartName(const std::string& path) { return path + ".part"; }

}  // namespace

absl::StatusOr<PartFile> PartFile::Open(const std::string& path, uint64_t size_bytes) {
  DISTRO_ASSIGN_OR_RETURN(FileHandle opened, OpenOwn(PartName(path), Create::kIfAbsent));
  PartFile file(path, std::move(opened));
  DISTRO_RETURN_IF_ERROR(file.ReadBack(size_bytes));
  return file;
}

absl::Status PartFile::ReadBack(uint64_t size_bytes) {
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t got = read(file_.fd(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoToStatus(errno, "read", PartName(path_));
    if (got == 0) return absl::OkStatus();
    if (size_ + got > size_bytes) return Clear();
    hash_.Update(absl::string_view(buffer.data(), got));
    size_ += got;
  }
}

absl::Status PartFile::Append(absl::string_view data) {
  if (const int error = WriteAllAt(file_.fd(), size_, data); error != 0)
    return ErrnoToStatus(error, "write", PartName(path_));
  hash_.Update(data);
  size_ += data.size();
  return absl::OkStatus();
}

absl::Status PartFile::Clear() {
  if (ftruncate(file_.fd(), 0) != 0) return ErrnoToStatus(errno, "truncate", PartName(path_));
  size_ = 0;
  hash_ = Sha256Stream();
  return absl::OkStatus();
}

absl::Status PartFile::Finish(absl::string_view sha256) {
  const Sha256Digest digest = hash_.Finish();
  if (AsBytes(digest) != sha256) {
    DISTRO_RETURN_IF_ERROR(Clear());
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": the SHA-256 of what came is ", ToHex(digest)));
  }
  if (fsync(file_.fd()) != 0) return ErrnoToStatus(errno, "fsync", PartName(path_));
  if (rename(PartName(path_).c_str(), path_.c_str()) != 0)
    return ErrnoToStatus(errno, "rename", path_);
  return SyncFolder(FolderOf(path_));
}

}  // namespace distro
