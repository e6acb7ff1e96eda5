// `distroctl completion`: completion for shells, made from the same commands that are parsed and explained. Pure.
#pragma once

#include <string>
#include <vector>

#include "tools/distroctl/command.h"

namespace distro::tools {

// A script that defines completion of commands, flags, and values that are files, folders or of a closed set. For bash;
// zsh reads it through its bashcompinit, which `zsh` adds.
std::string CompletionScript(const std::vector<Command>& commands, bool zsh);

Command CompletionCommand();

}  // namespace distro::tools
