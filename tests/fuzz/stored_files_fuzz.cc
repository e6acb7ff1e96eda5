// The small files of a data folder (run.pb, snapshots.pb, admission.pb): OK, DataLoss, or refused
// as of a newer version.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/reason.h"
#include "server/log/admission_store.h"
#include "server/log/run_identity.h"
#include "server/log/snapshot_store.h"

namespace {

void Check(const absl::Status& status) {
  if (status.ok() || status.code() == absl::StatusCode::kDataLoss) return;
  if (distro::ReasonOf(status) != "version") std::abort();
}

void ParseAll(absl::string_view bytes) {
  Check(distro::server::ParseRunFile(bytes).status());
  Check(distro::server::ParseSnapshotsFile(bytes).status());
  Check(distro::server::ParseAdmission(bytes).status());
}

// The input as a message behind the right magic, with the right checksum; its first byte is the
// version.
std::string Sealed(absl::string_view magic, absl::string_view input) {
  std::string bytes(magic);
  distro::AppendLittleEndian(&bytes, static_cast<uint32_t>(input.empty() ? 1 : input[0] & 3));
  if (!input.empty()) absl::StrAppend(&bytes, input.substr(1));
  const uint64_t checksum = distro::Xxh3(bytes);
  distro::AppendLittleEndian(&bytes, checksum);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  ParseAll(bytes);
  for (const char* magic : {"DSTRORUN", "DSTROSNP", "DSTROADM"}) ParseAll(Sealed(magic, bytes));
  return 0;
}
