// The archiver's state file: OK, DataLoss or FailedPrecondition (newer); what is accepted is what
// would be written.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "tools/archiver/archive_state.h"

namespace {

void Check(absl::string_view text) {
  const auto state = distro::tools::ParseArchiveState(text);
  if (state.ok()) {
    if (distro::tools::EncodeArchiveState(*state) != text) std::abort();
  } else if (!absl::IsDataLoss(state.status()) && !absl::IsFailedPrecondition(state.status())) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  Check(text);
  // With the right checksum, so that the lines are reached.
  const std::string body = absl::StrCat("distro-archiver 1\nrun ", text);
  Check(absl::StrCat(body, "checksum ", distro::ToHex(distro::Xxh3(body)), "\n"));
  return 0;
}
