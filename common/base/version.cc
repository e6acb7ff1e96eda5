#include "common/base/version.h"

namespace distro {

absl::string_view Version() { return DISTRO_VERSION; }

}  // namespace distro
