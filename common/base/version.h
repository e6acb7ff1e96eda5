// Version of this build.
#pragma once

#include "absl/strings/string_view.h"

namespace distro {

// "major.minor.patch" as CMakeLists.txt says it.
absl::string_view Version();

}  // namespace distro
