// A program of ours as a process of its own, whose log can be waited for; killed with the object,
// together with its folder for temporary files.
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
  // Starts `program`; a test failure when that is not possible. Its standard error is read by this
  // object, line by line.
  ChildProcess(const std::string& program, const std::vector<std::string>& flags);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  // Reads on until a line of the log contains `text`, and returns it; empty, and a test failure:
  // the program ended first.
  std::string AwaitLine(absl::string_view text);

  // The same; not set, and no failure: the program ended first.
  std::optional<std::string> FindLine(absl::string_view text);

  // Reads the log to its end and waits for the program: waitpid's status. Once.
  int Wait();
  // The same. -1: it was ended by a signal.
  int ExitCode();

  // What was read of the log so far.
  const std::string& log() const { return log_text_; }

 private:
  bool ReadLine(std::string* line);

  ScratchFolder temporary_;
  pid_t pid_ = 0;
  FILE* log_ = nullptr;
  std::string log_text_;
};

}  // namespace distro::testing
