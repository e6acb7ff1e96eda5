// A command of distroctl as data: what it takes, what it says about itself, and the function that does it. Parsing,
// --help, shell completion and dispatch read nothing else; the list is in commands.h. Each command's file makes its own
// (this is where distroctl's flags are declared; it has no flags.cc).
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/distroctl/arguments.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

enum class Value { kSwitch, kText, kFile, kFolder, kCount, kNumber, kDuration, kWords };

struct Flag {
  std::string name;                       // without dashes
  Value value = Value::kText;             // what it takes; kSwitch nothing
  std::string help = {};                  // one sentence, or more
  std::string default_value = {};         // used when it is not given; empty: none
  std::vector<std::string> choices = {};  // of kText: no other value is taken
};

// Where a command writes while it runs.
struct Console {
  std::function<void(absl::string_view line)> progress;  // for people, standard error
  std::ostream* out = nullptr;  // of commands that print more than once; borrowed
};

struct Command {
  std::string name;  // "log show"
  std::string arguments =
      {};               // "NAME HOST:PORT", "[ROUND]": brackets may stay away, last ones only
  std::string summary;  // one sentence
  std::vector<Flag> flags = {};
  std::string help;  // paragraphs, then examples: what --help prints below the flags
  absl::StatusOr<Report> (*run)(const Arguments& arguments, const Console& console) = nullptr;
};

// The flags of every command: --output, --help.
std::vector<Flag> CommonFlags();
// Those of a command that talks with an aggregator (common/client/client_flags.h), followed by `own`.
std::vector<Flag> WithClientFlags(std::vector<Flag> own);

}  // namespace distro::tools
