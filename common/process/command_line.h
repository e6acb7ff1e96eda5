// A program's command line as data: its commands, what each takes, what it says about itself, and
// the function that does it. Parsing, --help, --version, completion and dispatch are the same in
// all programs (docs/tools.md, "Command lines").
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
// Flags are --name VALUE or --name=VALUE, a switch --name, --noname or --name=false; "--" ends
// them. Of a flag that is given twice the last counts. Every program also has --help and --version,
// `help COMMAND` and `completion SHELL`.
//
// Called once, at the start of main; not thread-safe. CLI11 parses; nothing outside command_line.cc
// sees it.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/process/flag.h"

namespace distro {

// A word that is no flag; they come in this order.
struct Argument {
  std::string name;    // "HOST:PORT"
  std::string* value;  // outlives the parse
  bool required = true;
};

struct Command {
  // "log show"; those with the same first word follow each other. Empty: what the program does
  // without a command. Its flags may stand before a command too, which takes those of the same name
  // and ignores the others: a container's entry point gives flags to whatever is run.
  std::string name = {};
  std::vector<Argument> arguments = {};
  std::string summary = {};  // one sentence; not needed without a name
  std::vector<Flag> flags = {};
  std::string help = {};  // paragraphs, then examples: what --help prints below the flags
  // The exit code, or a status that becomes one.
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
  std::string help = {};  // as of a command: at the end of the overview
  std::vector<ExitCodeHelp> exit_codes = {{0, "done"}, {1, "failure"}, {2, "wrong usage"}};
  // Of a status that is not OK. Of InvalidArgument, which is what a wrong command line is, 2.
  std::function<int(const absl::Status&)> exit_code = [](const absl::Status& status) {
    return absl::IsInvalidArgument(status) ? 2 : 1;
  };
};

// Runs what `words`, a command line without the program's name, ask for: help and completion go to
// `out`; a status of the command, or of the command line itself, goes to `error`, after the
// program's name.
int RunProgram(const Program& program, const std::vector<std::string>& words, std::ostream* out,
               std::ostream* error);
// The same on the process's own streams.
int RunProgram(const Program& program, int argc, char** argv);

}  // namespace distro
