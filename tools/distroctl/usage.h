// What --help prints, made from the commands alone. Pure.
#pragma once

#include <string>
#include <vector>

#include "tools/distroctl/command.h"

namespace distro::tools {

// All commands, a line each, and the exit codes.
std::string Overview(const std::vector<Command>& commands);

// One command: arguments, flags with their defaults, help and examples.
std::string CommandHelp(const Command& command);

}  // namespace distro::tools
