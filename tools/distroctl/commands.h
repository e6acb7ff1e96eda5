// All commands of distroctl, in the order of --help, and how a command line finds and runs one.
#pragma once

#include <string>
#include <vector>

#include "tools/distroctl/command.h"
#include "tools/distroctl/exit_code.h"

namespace distro::tools {

// Those with the same first word follow each other.
std::vector<Command> Commands();

// Runs `words`, a command line without the program's name: the result goes to `out`, errors and progress to `error`.
ExitCode RunCommandLine(const std::vector<std::string>& words, std::ostream* out,
                        std::ostream* error);

}  // namespace distro::tools
