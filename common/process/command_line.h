// The command line of a program whose flags are absl's: the one place that parses argv, for the programs that have one
// set of flags. (distroctl, where each command has flags of its own, has a parser of its own.)
//
// Called once, at the start of main; not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace distro {

// What --help and --version say.
struct ProgramHelp {
  std::string program;  // "distro-worker"
  std::string usage;    // begins in mid-sentence: absl writes "PROGRAM: " before it
  std::vector<std::string> flag_sources;  // ends of the names of the files whose flags --help lists
};

// Sets the flags from argv and returns the positional arguments, without the program's name. --help, --version and a
// flag that does not parse end the process.
std::vector<std::string> ParseFlags(int argc, char** argv, const ProgramHelp& help);

// OK: there are none. InvalidArgument names the first.
absl::Status NoArguments(const std::vector<std::string>& arguments);

}  // namespace distro
