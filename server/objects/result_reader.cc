#include "server/objects/result_reader.h"

#include "common/base/status_macros.h"

namespace distro::server {

absl::StatusOr<uint64_t> ResultReader::Open() {
  DISTRO_ASSIGN_OR_RETURN(const SharedBytes open, Locate());
  return open != nullptr ? open->size() : record_->payload_bytes(segment_);
}

absl::StatusOr<std::string> ResultReader::Read(uint64_t offset, uint64_t size) {
  SharedBytes open = open_.lock();
  if (open == nullptr && record_ == nullptr) {
    DISTRO_ASSIGN_OR_RETURN(open, Locate());
  }
  if (open != nullptr) return open->substr(offset, size);
  return record_->Read(segment_, offset, size);
}

absl::StatusOr<SharedBytes> ResultReader::Locate() {
  DISTRO_ASSIGN_OR_RETURN(const Found found, find_());
  if (const auto* const open = std::get_if<SharedBytes>(&found)) {
    open_ = *open;
    return *open;
  }
  record_ = std::get<std::shared_ptr<const StoredRecord>>(found);
  return SharedBytes();
}

}  // namespace distro::server
