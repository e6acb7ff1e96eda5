// A partial download: grows by appending to `path`.part, and gets its final name after its SHA-256
// is checked. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/checksum.h"
#include "common/base/file_calls.h"

namespace distro {

class PartFile {
 public:
  // Opens or creates `path`.part and hashes its content. Bytes beyond `size_bytes` are dropped.
  // InvalidArgument: there is something else of that name, such as a link.
  static absl::StatusOr<PartFile> Open(const std::string& path, uint64_t size_bytes);
  PartFile(PartFile&& other) noexcept = default;
  PartFile& operator=(PartFile&&) = delete;

  // Bytes written so far.
  uint64_t size() const { return size_; }
  absl::Status Append(absl::string_view data);
  // Starts over.
  absl::Status Clear();
  // Makes the bytes durable under their final name if their SHA-256 is `sha256`. Otherwise empties
  // the file and returns InvalidArgument.
  absl::Status Finish(absl::string_view sha256);

 private:
  PartFile(std::string path, FileHandle file) : path_(std::move(path)), file_(std::move(file)) {}
  absl::Status ReadBack(uint64_t size_bytes);

  std::string path_;
  FileHandle file_;
  uint64_t size_ = 0;
  Sha256Stream hash_;  // of the bytes written so far
};

}  // namespace distro
