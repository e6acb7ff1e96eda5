#include "tools/distroctl/command.h"

#include <utility>

#include "common/client/client_flags.h"

namespace distro::tools {

std::vector<Flag> CommonFlags() {
  return {{.name = "output",
           .value = Value::kText,
           .help = "text for people, json for programs (docs/tools.md).",
           .default_value = "text",
           .choices = {"text", "json"}},
          {.name = "help", .value = Value::kSwitch, .help = "Prints this."}};
}

std::vector<Flag> WithClientFlags(std::vector<Flag> own) {
  const std::vector<Flag> client = {
      {.name = "ca", .value = Value::kFile, .help = kCaHelp},
      {.name = "cert", .value = Value::kFile, .help = kCertHelp},
      {.name = "key", .value = Value::kFile, .help = kKeyHelp},
      {.name = "token_file", .value = Value::kFile, .help = kTokenFileHelp},
      {.name = "server_name", .value = Value::kText, .help = kServerNameHelp},
      {.name = "insecure", .value = Value::kSwitch, .help = kInsecureHelp}};
  own.insert(own.end(), client.begin(), client.end());
  return own;
}

}  // namespace distro::tools
