// Runs a shell command that the operator configured: passes its output to the log as lines, and
// returns its result as a status. Or runs it as a filter, from bytes to bytes.
//
//   ShellCommand command("rclone copy $DISTRO_FOLDER remote:models/");
//   absl::Status end = command.Run({{"DISTRO_FOLDER", folder}}, [&](absl::string_view line) {...});
//   absl::StatusOr<std::string> sorted = ShellCommand("sort").Filter(text);
//
// Thread-safe; one Run or Filter at a time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace distro {

class ShellCommand {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;

  // `patience`: time between telling a command to stop and killing it.
  explicit ShellCommand(std::string command, absl::Duration patience = absl::Seconds(10));
  ~ShellCommand();
  ShellCommand(const ShellCommand&) = delete;
  ShellCommand& operator=(const ShellCommand&) = delete;

  // Runs it with /bin/sh in its own process group, with the variables added to this process's
  // environment and an empty standard input. Blocks until it ends, but does not wait for its
  // background processes. `line` receives its standard output and error, without line ends and cut
  // at 1000 bytes per line.
  //
  // Aborted: it ended with a non-zero code or by a signal; the message has its last line.
  // Cancelled: Stop was called, possibly before. Other codes: it could not be started.
  absl::Status Run(const Variables& variables,
                   absl::FunctionRef<void(absl::string_view line)> line);

  // Runs the command with `input` on its standard input and returns its standard output. Statuses
  // as Run; the message of Aborted has the last line of standard error. ResourceExhausted: more
  // than kMaxFilteredBytes of output.
  absl::StatusOr<std::string> Filter(absl::string_view input);
  static constexpr int64_t kMaxFilteredBytes = 64 << 20;

  // Sends the process group SIGTERM, and after `patience` SIGKILL. Later calls of Run and Filter
  // return Cancelled. Callable from any thread.
  void Stop();

 private:
  class Lines;

  // Waits for the end of the shell; `lines` gets what can be read from `output` (-1: nothing).
  // Returns what waitpid says. Cancelled: Stop was called.
  absl::StatusOr<int> Await(int shell, int output, Lines* lines);

  const std::string command_;
  const absl::Duration patience_;
  const int stop_;  // an eventfd that is readable from Stop on
};

}  // namespace distro
