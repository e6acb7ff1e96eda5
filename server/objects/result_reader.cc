#include "server/objects/result_reader.h"

#include "common/base/status_macros.h"

namespace distro::server {

absl::StatusOr<uint64_t> ResultReader::Open() {
  DISTRO_ASSIGN_OR_RETURN(const Found found, find_());
  if (const auto* const open = std::get_if<SharedBytes>(&found)) {
    open_ = *open;
    return (*open)->size();
  }
  record_ = std::get<std::shared_ptr<const StoredRecord>>(found);
  return record_->payload_bytes(segment_);
}

absl::StatusOr<std::string> ResultReader::Read(uint64_t offset, uint64_t size) {
  if (record_ == nullptr) {
    if (const SharedBytes open = open_.lock()) return open->substr(offset, size);
    DISTRO_RETURN_IF_ERROR(Open().status());
    if (record_ == nullptr) return absl::UnavailableError("the result was made again");
  }
  return record_->Read(segment_, offset, size);
}

}  // namespace distro::server
