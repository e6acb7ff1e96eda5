#include "common/process/shell_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

extern char** environ;

namespace distro {
namespace {

constexpr size_t kLineBytes = 1000;

// Bytes of two outputs as lines.
class Lines {
 public:
  explicit Lines(absl::FunctionRef<void(absl::string_view)> line) : line_(line) {}

  void Add(absl::string_view bytes) {
    for (const char byte : bytes) {
      if (byte == '\n') {
        End();
      } else if (current_.size() < kLineBytes) {
        current_.push_back(byte);
      }
    }
  }
  void End() {
    if (current_.empty()) return;
    line_(current_);
    last_ = std::move(current_);
    current_.clear();
  }
  const std::string& last() const { return last_; }

 private:
  const absl::FunctionRef<void(absl::string_view)> line_;
  std::string current_;
  std::string last_;
};

std::vector<std::string> EnvironmentWith(const ShellCommand::Variables& variables) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view name =
        absl::string_view(*entry).substr(0, absl::string_view(*entry).find('='));
    bool replaced = false;
    for (const auto& [key, value] : variables) replaced |= key == name;
    if (!replaced) environment.emplace_back(*entry);
  }
  for (const auto& [key, value] : variables) environment.push_back(absl::StrCat(key, "=", value));
  return environment;
}

std::vector<char*> Pointers(std::vector<std::string>* strings) {
  std::vector<char*> pointers;
  for (std::string& each : *strings) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Starts the shell with both outputs connected to `output` and no other file of this process, in
// its own process group, with default signal handling.
absl::StatusOr<pid_t> Spawn(const std::string& command, const ShellCommand::Variables& variables,
                            int output) {
  std::vector<std::string> arguments = {"/bin/sh", "-c", command};
  std::vector<std::string> environment = EnvironmentWith(variables);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  const auto free = absl::MakeCleanup([&] {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  });
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, arguments[0].c_str(), &files, &attributes,
                                Pointers(&arguments).data(), Pointers(&environment).data());
  if (error != 0) return ErrnoToStatus(error, "start", arguments[0]);
  return pid;
}

absl::Status EndOf(int status, const std::string& last_line) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  const std::string end = WIFEXITED(status)
                              ? absl::StrCat("ended with ", WEXITSTATUS(status))
                              : absl::StrCat("was killed by signal ", WTERMSIG(status));
  return absl::AbortedError(last_line.empty() ? end : absl::StrCat(end, ": ", last_line));
}

int Milliseconds(absl::Duration duration) {
  return duration == absl::InfiniteDuration() ? -1
                                              : static_cast<int>(absl::ToInt64Milliseconds(
                                                    std::max(duration, absl::ZeroDuration())));
}

// Reads the available output; returns false at its end.
bool ReadSome(int output, Lines* lines) {
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t bytes = read(output, buffer.data(), buffer.size());
    if (bytes < 0) return errno == EAGAIN || errno == EINTR;
    if (bytes == 0) return false;
    lines->Add(absl::string_view(buffer.data(), bytes));
  }
}

}  // namespace

ShellCommand::ShellCommand(std::string command, absl::Duration patience)
    : command_(std::move(command)), patience_(patience), stop_(eventfd(0, EFD_CLOEXEC)) {}

ShellCommand::~ShellCommand() { close(stop_); }

void ShellCommand::Stop() {
  const uint64_t one = 1;
  static_cast<void>(write(stop_, &one, sizeof(one)));
}

absl::Status ShellCommand::Run(const Variables& variables,
                               absl::FunctionRef<void(absl::string_view line)> line) {
  int pipes[2];
  if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) != 0) return ErrnoToStatus(errno, "make", "a pipe");
  const auto close_pipe = absl::MakeCleanup([&] { close(pipes[0]); });
  // The command's end of the pipe blocks, as programs expect.
  fcntl(pipes[1], F_SETFL, 0);
  const absl::StatusOr<pid_t> pid = Spawn(command_, variables, pipes[1]);
  close(pipes[1]);
  DISTRO_RETURN_IF_ERROR(pid.status());
  const int process = static_cast<int>(syscall(SYS_pidfd_open, *pid, 0));
  const auto close_process = absl::MakeCleanup([&] { close(process); });
  if (process < 0) {
    kill(-*pid, SIGKILL);
    waitpid(*pid, nullptr, 0);
    return ErrnoToStatus(errno, "watch", command_);
  }
  Lines lines(line);
  bool stopped = false;
  absl::Time kill_at = absl::InfiniteFuture();
  std::array<pollfd, 3> events = {
      {{process, POLLIN, 0}, {pipes[0], POLLIN, 0}, {stop_, POLLIN, 0}}};
  while (true) {
    const int ready = poll(events.data(), events.size(), Milliseconds(kill_at - absl::Now()));
    if (ready < 0 && errno == EINTR) continue;
    if (absl::Now() >= kill_at) {
      kill(-*pid, SIGKILL);
      kill_at = absl::InfiniteFuture();
    }
    if (events[2].revents != 0) {
      stopped = true;
      kill_at = absl::Now() + patience_;
      events[2].fd = -1;
      kill(-*pid, SIGTERM);
    }
    if (!ReadSome(pipes[0], &lines)) events[1].fd = -1;
    if (events[0].revents != 0) break;
  }
  int status = 0;
  while (waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
  }
  ReadSome(pipes[0], &lines);
  lines.End();
  if (stopped) return absl::CancelledError("stopped");
  return EndOf(status, lines.last());
}

}  // namespace distro
