// Renders the help text of a program from the tables of its command line. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/process/command_line.h"

namespace distro {

// --help, --version: of every command.
std::vector<Flag> CommonFlags();

// The commands whose name begins with the word: "run" gives its whole family. Empty: all commands
// with a name.
std::vector<Command> Family(const Program& program, absl::string_view first);

// "log show [ROUND]".
std::string Usage(const Command& command);

// Lists the commands of a family, one per line; for all commands, also the program's action without
// one.
std::string Overview(const Program& program, absl::string_view first);

// One command: arguments, flags with their defaults, help and examples.
std::string CommandHelp(const Program& program, const Command& command);

// For bash; `zsh`: for zsh, which reads the same function.
std::string CompletionScript(const Program& program, bool zsh);

}  // namespace distro
