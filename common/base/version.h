// Version of this build.
#pragma once

#include "absl/strings/string_view.h"

namespace distro {

// "major.minor.patch", set in CMakeLists.txt.
absl::string_view Version();

}  // namespace distro
