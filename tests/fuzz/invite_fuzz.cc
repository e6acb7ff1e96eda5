// Any bytes are an invite or InvalidArgument. An invite is written as a text that is read back as
// the same invite.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "common/client/options/invite.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto invite = distro::ParseInvite(text);
  if (!invite.ok()) {
    if (!absl::IsInvalidArgument(invite.status())) std::abort();
    return 0;
  }
  const auto again = distro::ParseInvite(distro::InviteText(*invite));
  if (!again.ok() || !(*again == *invite)) std::abort();
  return 0;
}
