// Renders the help text of a program from the tables of its command line. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/process/command_line.h"

namespace distro {

// --help, --version: of every command.
std::vector<Flag> CommonFlags();

// The commands whose name begins with the word: "run" is all of its family. Empty word: all that
// have a name.
std::vector<Command> Family(const Program& program, absl::string_view first);

// "log show [ROUND]".
std::string Usage(const Command& command);

// The commands of a family, a line each; of all also what the program does without one.
std::string Overview(const Program& program, absl::string_view first);

// One command: arguments, flags with their defaults, help and examples.
std::string CommandHelp(const Program& program, const Command& command);

// For bash; `zsh`: for zsh, which reads the same function.
std::string CompletionScript(const Program& program, bool zsh);

}  // namespace distro
