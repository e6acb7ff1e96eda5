// distroctl: prepares, inspects and operates runs. See commands.h, or `distroctl help`.
#include <iostream>

#include "tools/distroctl/commands.h"

int main(int argc, char** argv) {
  distro::tools::Console console = distro::tools::ConsoleOn(&std::cout, &std::cerr);
  return distro::RunProgram(distro::tools::DistroctlProgram(&console), argc, argv);
}
