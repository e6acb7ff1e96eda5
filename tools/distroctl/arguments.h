// What was given to a command: parsed, of the right types, defaults filled in.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace distro::tools {

struct Command;

// Names are those that the command declares; another one is our own bug and ends the process.
class Arguments {
 public:
  Arguments(std::map<std::string, std::string> flags, std::vector<std::string> positional)
      : flags_(std::move(flags)), positional_(std::move(positional)) {}

  const std::vector<std::string>& positional() const { return positional_; }
  const std::string& Text(const std::string& flag) const { return flags_.at(flag); }
  // Empty text and no default: false, 0.
  bool Switch(const std::string& flag) const;
  uint64_t Count(const std::string& flag) const;
  double Number(const std::string& flag) const;
  absl::Duration Duration(const std::string& flag) const;
  std::vector<std::string> Words(const std::string& flag) const;

 private:
  std::map<std::string, std::string> flags_;
  std::vector<std::string> positional_;
};

// `given`: what follows the command's name. Flags are --name VALUE or --name=VALUE, a switch --name; "--" ends them.
// InvalidArgument names the flag or the argument: not one of this command, given twice, no value, not of its kind, or
// too many or too few arguments.
absl::StatusOr<Arguments> ParseArguments(const Command& command,
                                         const std::vector<std::string>& given);

}  // namespace distro::tools
