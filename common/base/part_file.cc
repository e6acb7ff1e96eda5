#include "common/base/part_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace distro {
namespace {

std::string PartName(const std::string& path) { return path + ".part"; }

std::string Folder(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

absl::StatusOr<PartFile> PartFile::Open(const std::string& path, uint64_t size_bytes) {
  const int fd = open(PartName(path).c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoToStatus(errno, "open", PartName(path));
  PartFile file(path, fd);
  DISTRO_RETURN_IF_ERROR(file.ReadBack(size_bytes));
  return file;
}

PartFile::~PartFile() {
  if (fd_ >= 0) close(fd_);
}

PartFile::PartFile(PartFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      hash_(std::move(other.hash_)) {}

absl::Status PartFile::ReadBack(uint64_t size_bytes) {
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t got = read(fd_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoToStatus(errno, "read", PartName(path_));
    if (got == 0) return absl::OkStatus();
    if (size_ + got > size_bytes) return Clear();
    hash_.Update(absl::string_view(buffer.data(), got));
    size_ += got;
  }
}

absl::Status PartFile::Append(absl::string_view data) {
  hash_.Update(data);
  size_ += data.size();
  while (!data.empty()) {
    const ssize_t put = write(fd_, data.data(), data.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return ErrnoToStatus(errno, "write", PartName(path_));
    data.remove_prefix(put);
  }
  return absl::OkStatus();
}

absl::Status PartFile::Clear() {
  if (ftruncate(fd_, 0) != 0) return ErrnoToStatus(errno, "truncate", PartName(path_));
  size_ = 0;
  hash_ = Sha256Stream();
  return absl::OkStatus();
}

absl::Status PartFile::Finish(absl::string_view sha256) {
  const Sha256Digest digest = hash_.Finish();
  if (absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()) != sha256) {
    DISTRO_RETURN_IF_ERROR(Clear());
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": the SHA-256 of what came is ", ToHex(digest)));
  }
  if (fsync(fd_) != 0) return ErrnoToStatus(errno, "fsync", PartName(path_));
  if (rename(PartName(path_).c_str(), path_.c_str()) != 0)
    return ErrnoToStatus(errno, "rename", path_);
  return SyncFolder(Folder(path_));
}

}  // namespace distro
