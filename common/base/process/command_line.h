// A program's command line as data: its commands, their flags and arguments, help texts, and the
// functions that run them. Parsing, --help, --version, completion and dispatch are the same in all
// programs (docs/tools.md, "Command lines").
//
//   int main(int argc, char** argv) {
//     Options options;
//     return RunProgram({.name = "greet",
//                        .summary = "greets people.",
//                        .commands = {{.flags = {{.name = "name", .value = &options.name,
//                                                 .help = "Who."}},
//                                      .run = [&] { return Greet(options); }}}},
//                       argc, argv);
//   }
//
// Flags are --name VALUE or --name=VALUE; a switch is --name, --noname or --name=false; "--" ends
// them. If a flag is given twice, the last counts. Every program also has --help and --version,
// `help COMMAND` and `completion SHELL`.
//
// Call it once, at the start of main; not thread-safe. Only command_line.cc uses CLI11, the parser.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/process/flag.h"

namespace distro {

// A positional argument.
struct Argument {
  std::string name;    // "HOST:PORT"
  std::string* value;  // outlives the parse
  bool required = true;
};

struct Command {
  // Such as "log show"; commands with the same first word are adjacent. Empty: the program's action
  // without a command. Flags of that action may also precede another command, which uses those that
  // it has too and ignores the others. So a container's entry point can pass flags to any command.
  std::string name = {};
  std::vector<Argument> arguments = {};
  std::string summary = {};  // one sentence; not needed without a name
  std::vector<Flag> flags = {};
  std::string help = {};  // paragraphs, then examples: what --help prints below the flags
  // Returns the exit code, or a status that is converted to one.
  std::function<absl::StatusOr<int>()> run = {};
};

struct ExitCodeHelp {
  int code;
  std::string meaning;
};

struct Program {
  std::string name;     // "distro-worker"
  std::string summary;  // "trains a model"; --help puts the name before it
  std::vector<Command> commands;
  std::string help = {};  // as a command's; shown at the end of the overview
  std::vector<ExitCodeHelp> exit_codes = {{0, "done"}, {1, "failure"}, {2, "wrong usage"}};
  // Converts a status that is not OK. InvalidArgument, for an invalid command line, becomes 2.
  std::function<int(const absl::Status&)> exit_code = [](const absl::Status& status) {
    return absl::IsInvalidArgument(status) ? 2 : 1;
  };
};

// Runs the command line `words`, without the program's name. Writes help and completion to `out`,
// and an error of the command or of the command line to `error`, after the program's name. Output
// that could not be written is an error of a command with a name, unless its reader has ended.
int RunProgram(const Program& program, const std::vector<std::string>& words, std::ostream* out,
               std::ostream* error);
// The same on the process's own streams, after PrepareProcess.
int RunProgram(const Program& program, int argc, char** argv);

}  // namespace distro
