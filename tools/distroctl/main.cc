// distroctl: prepares, inspects and operates runs. See commands.h, or `distroctl help`.
#include <iostream>

#include "tools/distroctl/commands.h"

int main(int argc, char** argv) {
  return distro::tools::RunCommandLine({argv + 1, argv + argc}, &std::cout, &std::cerr);
}
