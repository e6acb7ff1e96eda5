#pragma once

#include "common/method/base/method.h"

namespace distro {

// The method deltas (docs/methods.md).
const Method& Deltas();

}  // namespace distro
