// An archiver's log file: with the checksum made right, any bytes are DataLoss, a newer version, or
// a message that is written and read back as the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "common/base/checksum.h"
#include "tools/archiver/archive_log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  const uint64_t checksum = distro::Xxh3(bytes);
  bytes.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  const auto archive = distro::tools::ParseArchiveLog(bytes);
  if (!archive.ok()) {
    const auto code = archive.status().code();
    if (code != absl::StatusCode::kDataLoss && code != absl::StatusCode::kFailedPrecondition)
      std::abort();
    return 0;
  }
  const std::string written = distro::tools::EncodeArchiveLog(*archive);
  const auto again = distro::tools::ParseArchiveLog(written);
  if (!again.ok() || distro::tools::EncodeArchiveLog(*again) != written) std::abort();
  return 0;
}
