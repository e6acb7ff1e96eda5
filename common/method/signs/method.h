#pragma once

#include "common/method/base/method.h"

namespace distro {

// The method signs (docs/methods.md).
const Method& Signs();

}  // namespace distro
