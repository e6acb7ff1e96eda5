// What must hold for every input of a fuzz target.
#pragma once

#include <cstdlib>

namespace distro::testing {

// Ends the process if it does not.
inline void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace distro::testing
