#include "common/base/ids.h"

#include "absl/strings/ascii.h"

namespace distro {

absl::Status ValidateName(absl::string_view name, absl::string_view what) {
  if (name.empty() || name.size() > 63) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": has ", name.size(), " characters, 1 to 63 of [a-z0-9-] are allowed"));
  }
  for (size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    if (!(absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-')) {
      return absl::InvalidArgumentError(absl::StrCat(what, ": character ", i, " (0x",
                                                     absl::Hex(c, absl::kZeroPad2),
                                                     ") is not one of [a-z0-9-]"));
    }
  }
  return absl::OkStatus();
}

}  // namespace distro
