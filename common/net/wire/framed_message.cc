#include "common/net/wire/framed_message.h"

#include <climits>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"

namespace distro {
namespace {

constexpr uint32_t kVersion = 1;
constexpr size_t kPrefixBytes = 8 + 4;
constexpr size_t kChecksumBytes = 8;

}  // namespace

std::string EncodeFramedMessage(absl::string_view magic,
                                const google::protobuf::MessageLite& message) {
  std::string bytes(magic);
  AppendLittleEndian(&bytes, kVersion);
  message.AppendToString(&bytes);
  const uint64_t checksum = Xxh3(bytes);
  AppendLittleEndian(&bytes, checksum);
  return bytes;
}

absl::Status ParseFramedMessage(absl::string_view bytes, absl::string_view magic,
                                google::protobuf::MessageLite* message) {
  if (bytes.size() < kPrefixBytes + kChecksumBytes || !absl::StartsWith(bytes, magic)) {
    return absl::DataLossError(absl::StrCat("does not begin with ", magic, ", or is not whole"));
  }
  const absl::string_view checked = bytes.substr(0, bytes.size() - kChecksumBytes);
  uint64_t checksum;
  std::memcpy(&checksum, bytes.data() + checked.size(), sizeof(checksum));
  if (checksum != Xxh3(checked)) return absl::DataLossError("its checksum does not match");
  uint32_t version;
  std::memcpy(&version, bytes.data() + magic.size(), sizeof(version));
  DISTRO_RETURN_IF_ERROR(CheckFormatVersion(version, kVersion));
  const absl::string_view body = checked.substr(kPrefixBytes);
  if (body.size() <= INT_MAX && message->ParseFromArray(body.data(), static_cast<int>(body.size())))
    return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("is not a ", message->GetTypeName()));
}

absl::Status CheckFormatVersion(uint64_t version, uint64_t known) {
  if (version == 0) return absl::DataLossError("has version 0");
  if (version <= known) return absl::OkStatus();
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, "version",
      absl::StrCat("format version ", version, " is newer than this program knows (", known,
                   "): use a newer version of it"));
}

}  // namespace distro
