// Lines for people on a stream of this process, which must not stop it: the reader may have ended,
// or may be there and not read (a log collector that hangs, a terminal after Ctrl-S). Not for
// results, of which nothing may be missing.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace distro {

// Whether a short line can be written to `fd` without waiting.
bool HasRoom(int fd);

// Thread-compatible.
class OutputLines {
 public:
  explicit OutputLines(int fd) : fd_(fd) {}

  // Writes whole lines. Waits at most a second for the reader, once until it reads again, and
  // leaves out what it does not take; says later how many calls that were.
  void Write(absl::string_view lines);

 private:
  int fd_;
  int64_t left_out_ = 0;
};

}  // namespace distro
