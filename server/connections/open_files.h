// How many files the process may have open. Process-wide: for main functions and checks at start.
#pragma once

#include <cstdint>

namespace distro::server {

// Raises the limit to the highest that the process may give itself.
void RaiseOpenFiles();

// What it is.
uint64_t OpenFilesLimit();

}  // namespace distro::server
