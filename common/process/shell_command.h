// A command of the shell that an operator gave, run beside a program: its output as lines for the
// log, its end as a status.
//
//   ShellCommand command("rclone copy $DISTRO_FOLDER remote:models/");
//   absl::Status end = command.Run({{"DISTRO_FOLDER", folder}}, [&](absl::string_view line) {...});
//
// Thread-safe; one Run at a time.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace distro {

class ShellCommand {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;

  // `patience`: what a command that was told to stop has before it is killed.
  explicit ShellCommand(std::string command, absl::Duration patience = absl::Seconds(10));
  ~ShellCommand();
  ShellCommand(const ShellCommand&) = delete;
  ShellCommand& operator=(const ShellCommand&) = delete;

  // By /bin/sh, in a process group of its own, with the variables beside those of this process and
  // nothing on its standard input. Blocks until it has ended; what it left behind in the background
  // is not waited for. `line` gets what it writes, to either output, without ends of lines and
  // without what is beyond 1000 bytes of a line.
  //
  // Aborted: it ended with another code than 0, or by a signal; has the last line. Cancelled: Stop
  // was called, also before. Otherwise it could not be started.
  absl::Status Run(const Variables& variables,
                   absl::FunctionRef<void(absl::string_view line)> line);

  // From any thread: the group gets SIGTERM, and after `patience` SIGKILL. For ever.
  void Stop();

 private:
  const std::string command_;
  const absl::Duration patience_;
  const int stop_;  // an eventfd that is readable from Stop on
};

}  // namespace distro
