#include "server/log/admission_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/net/wire/framed_message.h"

namespace distro::server {
namespace {

constexpr absl::string_view kMagic = "DSTROADM";
constexpr uint64_t kMaxBytes = 4 << 20;

absl::Status Damage(absl::string_view what) {
  return absl::DataLossError(absl::StrCat(
      what,
      ": restore the file from a copy; without one remove it: the run is then not paused and "
      "nobody is quarantined, until an operator says so again"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<AdmissionStore>> AdmissionStore::Open(const std::string& path,
                                                                     Disk* disk) {
  std::unique_ptr<AdmissionStore> store(new AdmissionStore(path, disk));
  const absl::StatusOr<std::string> bytes = ReadFile(path, kMaxBytes);
  if (absl::IsNotFound(bytes.status())) return store;
  if (absl::IsInvalidArgument(bytes.status())) return Damage(bytes.status().message());
  DISTRO_RETURN_IF_ERROR(bytes.status());
  absl::StatusOr<v1::StoredAdmission> value = ParseAdmission(*bytes);
  if (absl::IsDataLoss(value.status()))
    return Damage(absl::StrCat(path, ": ", value.status().message()));
  if (!value.ok()) return Annotate(value.status(), path);
  store->value_ = *std::move(value);
  return store;
}

absl::Status AdmissionStore::Write(const v1::StoredAdmission& value) {
  const std::string bytes = EncodeAdmission(value);
  if (bytes.size() > kMaxBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("quarantined: ", value.quarantined_size(), " names are too many"));
  }
  DISTRO_RETURN_IF_ERROR(WriteAtomically(disk_, path_, bytes));
  value_ = value;
  return absl::OkStatus();
}

std::string EncodeAdmission(const v1::StoredAdmission& value) {
  return EncodeFramedMessage(kMagic, value);
}

absl::StatusOr<v1::StoredAdmission> ParseAdmission(absl::string_view bytes) {
  v1::StoredAdmission value;
  DISTRO_RETURN_IF_ERROR(ParseFramedMessage(bytes, kMagic, &value));
  for (int i = 1; i < value.quarantined_size(); ++i) {
    if (value.quarantined(i - 1).name() < value.quarantined(i).name()) continue;
    return absl::DataLossError("its names are not ascending");
  }
  return value;
}

}  // namespace distro::server
