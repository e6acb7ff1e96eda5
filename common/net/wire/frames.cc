#include "common/net/wire/frames.h"

#include "absl/strings/str_cat.h"

namespace distro {

absl::Status PayloadAssembler::Add(uint64_t offset, absl::string_view data,
                                   uint64_t payload_bytes) {
  if (data.empty() || data.size() > kMaxFrameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("data: ", data.size(), " bytes are outside 1..", kMaxFrameBytes));
  }
  if (payload_bytes == 0 || payload_bytes > max_payload_bytes_) {
    return absl::InvalidArgumentError(
        absl::StrCat("payload_bytes: ", payload_bytes, " is outside 1..", max_payload_bytes_));
  }
  if (payload_bytes_ != 0 && payload_bytes != payload_bytes_) {
    return absl::InvalidArgumentError(
        absl::StrCat("payload_bytes: ", payload_bytes, " after frames that said ", payload_bytes_));
  }
  if (offset != bytes_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("offset: ", offset, " where ", bytes_.size(), " comes next"));
  }
  if (data.size() > payload_bytes - offset) {
    return absl::InvalidArgumentError(absl::StrCat("data: ", data.size(), " bytes at offset ",
                                                   offset, " pass the payload's end at ",
                                                   payload_bytes));
  }
  if (payload_bytes_ == 0) bytes_.reserve(payload_bytes);
  payload_bytes_ = payload_bytes;
  bytes_.append(data.data(), data.size());
  return absl::OkStatus();
}

}  // namespace distro
