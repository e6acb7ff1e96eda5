// Immutable bytes that several owners share, such as a payload.
#pragma once

#include <memory>
#include <string>

namespace distro {

using SharedBytes = std::shared_ptr<const std::string>;

}  // namespace distro
