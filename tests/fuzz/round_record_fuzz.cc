// A record file of the round log, of one round or a pack: OK, DataLoss, or refused as of a newer
// version. The file is in memory (memfd), opened by its name in /proc.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/reason.h"
#include "server/log/record_reader.h"

namespace {

using distro::server::RecordKind;
using distro::server::RecordReader;

void Check(const absl::Status& status) {
  if (status.ok() || status.code() == absl::StatusCode::kDataLoss) return;
  if (distro::ReasonOf(status) != "version") std::abort();
}

void ReadRecord(absl::string_view bytes) {
  const int fd = memfd_create("record", MFD_CLOEXEC);
  if (fd < 0 || write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  const auto record = RecordReader::Open(absl::StrCat("/proc/self/fd/", fd), RecordKind::kRound);
  Check(record.status());
  if (record.ok()) {
    Check((*record)->VerifyPayloads());
    Check((*record)->HeaderOf((*record)->round()).status());
    Check((*record)->HeaderOf(distro::RoundId((*record)->end().value() - 1)).status());
  }
  close(fd);
}

// Corrects the checksums of a file whose layout the input chose, so that the checks behind them are
// reached.
std::string Sealed(absl::string_view input) {
  if (input.size() < 4) return "";
  const auto kind = static_cast<RecordKind>(input[2] & 7);
  std::string file = distro::server::EncodeRecordPrefix(kind);
  const size_t table = std::min<size_t>(input[0] & 7, (input.size() - 4) / 24);
  const size_t header = std::min<size_t>(input[1], input.size() - 4 - 24 * table);
  std::vector<distro::server::RecordEntry> entries(table);
  for (size_t i = 0; i < table; ++i) {
    // Small numbers from the input: sizes and places that may fit.
    entries[i] = {.offset = static_cast<uint8_t>(input[4 + 24 * i]),
                  .bytes = static_cast<uint8_t>(input[5 + 24 * i]),
                  .checksum = 0};
  }
  absl::StrAppend(&file, input.substr(4));
  return absl::StrCat(file, distro::server::EncodeRecordTail(kind, distro::RoundId(1), entries,
                                                             input.substr(0, header)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  ReadRecord(bytes);
  ReadRecord(Sealed(bytes));
  return 0;
}
