#include <algorithm>

#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/version.h"
#include "common/process/command_line.h"

namespace distro {

std::vector<std::string> ParseFlags(int argc, char** argv, const ProgramHelp& help) {
  absl::SetProgramUsageMessage(help.usage);
  absl::FlagsUsageConfig config;
  config.contains_help_flags = [sources = help.flag_sources](absl::string_view file) {
    return std::any_of(sources.begin(), sources.end(),
                       [file](const std::string& end) { return absl::EndsWith(file, end); });
  };
  config.contains_helpshort_flags = config.contains_help_flags;
  config.version_string = [program = help.program] {
    return absl::StrCat(program, " ", Version(), "\n");
  };
  absl::SetFlagsUsageConfig(config);
  const std::vector<char*> arguments = absl::ParseCommandLine(argc, argv);
  return std::vector<std::string>(arguments.begin() + 1, arguments.end());
}

absl::Status NoArguments(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", arguments[0], "': is not a flag; --help lists them"));
}

}  // namespace distro
