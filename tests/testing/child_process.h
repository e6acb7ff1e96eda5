// Runs a program of this project as a child process and waits for lines of its log. The destructor
// kills it and removes its folder for temporary files.
//
// Not thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/testing/scratch_folder.h"

namespace distro::testing {

class ChildProcess {
 public:
  // Starts `program`; the test fails if that is not possible. Reads its standard error line by
  // line.
  ChildProcess(const std::string& program, const std::vector<std::string>& flags);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  // Reads the log until a line contains `text`, and returns the line. If the program ends first,
  // returns an empty string and the test fails.
  std::string AwaitLine(absl::string_view text);

  // The same, but if the program ends first, returns nullopt without a failure.
  std::optional<std::string> FindLine(absl::string_view text);

  // Reads the log to its end, waits for the program, and returns waitpid's status. Call once.
  int Wait();
  // The same, but returns the exit code; -1: a signal ended it.
  int ExitCode();

  // The log read so far.
  const std::string& log() const { return log_text_; }

 private:
  bool ReadLine(std::string* line);

  ScratchFolder temporary_;
  pid_t pid_ = 0;
  FILE* log_ = nullptr;
  std::string log_text_;
};

}  // namespace distro::testing
