#include "common/feed/verified_payload.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"

namespace distro {
namespace {

constexpr uint64_t kPieceBytes = 512 * 1024;

}  // namespace

VerifiedPayload::VerifiedPayload(std::shared_ptr<const StoredRecord> record, SegmentId segment,
                                 uint64_t offset)
    : record_(std::move(record)), segment_(segment), offset_(offset) {}

absl::StatusOr<std::string> VerifiedPayload::Read(uint64_t size) {
  while (at_ < offset_) {
    DISTRO_RETURN_IF_ERROR(ReadOn(std::min(kPieceBytes, offset_ - at_)).status());
  }
  DISTRO_ASSIGN_OR_RETURN(std::string piece, ReadOn(size));
  if (done()) DISTRO_RETURN_IF_ERROR(record_->CheckChecksum(segment_, checksum_.Digest()));
  return piece;
}

absl::StatusOr<std::string> VerifiedPayload::ReadOn(uint64_t size) {
  DISTRO_ASSIGN_OR_RETURN(std::string piece, record_->Read(segment_, at_, size));
  checksum_.Update(piece);
  at_ += size;
  return piece;
}

}  // namespace distro
