#include "common/base/process/shell_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

extern char** environ;

namespace distro {
namespace {

constexpr size_t kLineBytes = 1000;

// The standard streams of a shell; -1 as input: empty.
struct Streams {
  int input = -1;
  int output = -1;
  int errors = -1;
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

// Starts the shell with these streams and no other file of this process, in its own process group,
// with default signal handling.
absl::StatusOr<pid_t> Spawn(const std::string& command, const ShellCommand::Variables& variables,
                            const Streams& streams) {
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
  if (streams.input < 0) {
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  } else {
    posix_spawn_file_actions_adddup2(&files, streams.input, STDIN_FILENO);
  }
  posix_spawn_file_actions_adddup2(&files, streams.output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, streams.errors, STDERR_FILENO);
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

// A file without a name, deleted with its descriptor.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("distro_filter", MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (fd_ >= 0) close(fd_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int fd() const { return fd_; }

  // The reader begins at the first byte.
  absl::Status Fill(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return ErrnoToStatus(errno, "write", "the input of a command");
      bytes.remove_prefix(written);
    }
    if (lseek(fd_, 0, SEEK_SET) == 0) return absl::OkStatus();
    return ErrnoToStatus(errno, "rewind", "the input of a command");
  }

  absl::StatusOr<std::string> Contents(int64_t max_bytes) const {
    struct stat info;
    if (fstat(fd_, &info) != 0) return ErrnoToStatus(errno, "read", "the output of a command");
    if (info.st_size > max_bytes)
      return absl::ResourceExhaustedError(absl::StrCat("wrote more than ", max_bytes, " bytes"));
    std::string bytes(info.st_size, '\0');
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t read = pread(fd_, &bytes[done], bytes.size() - done, done);
      if (read < 0 && errno == EINTR) continue;
      if (read <= 0) return ErrnoToStatus(errno, "read", "the output of a command");
      done += read;
    }
    return bytes;
  }

 private:
  const int fd_;
};

}  // namespace

// Bytes of an output as lines.
class ShellCommand::Lines {
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
  // Reads the available output; returns false at its end.
  bool ReadSome(int output) {
    std::array<char, 4096> buffer;
    while (true) {
      const ssize_t bytes = read(output, buffer.data(), buffer.size());
      if (bytes < 0) return errno == EAGAIN || errno == EINTR;
      if (bytes == 0) return false;
      Add(absl::string_view(buffer.data(), bytes));
    }
  }
  const std::string& last() const { return last_; }

 private:
  const absl::FunctionRef<void(absl::string_view)> line_;
  std::string current_;
  std::string last_;
};

ShellCommand::ShellCommand(std::string command, absl::Duration patience)
    : command_(std::move(command)), patience_(patience), stop_(eventfd(0, EFD_CLOEXEC)) {}

ShellCommand::~ShellCommand() { close(stop_); }

void ShellCommand::Stop() {
  const uint64_t one = 1;
  static_cast<void>(write(stop_, &one, sizeof(one)));
}

absl::StatusOr<int> ShellCommand::Await(int shell, int output, Lines* lines) {
  const int process = static_cast<int>(syscall(SYS_pidfd_open, shell, 0));
  const auto close_process = absl::MakeCleanup([&] { close(process); });
  if (process < 0) {
    kill(-shell, SIGKILL);
    waitpid(shell, nullptr, 0);
    return ErrnoToStatus(errno, "watch", command_);
  }
  bool stopped = false;
  const auto now = [] { return Clock::Real()->MonotonicNow(); };
  absl::Duration kill_at = absl::InfiniteDuration();
  std::array<pollfd, 3> events = {{{process, POLLIN, 0}, {output, POLLIN, 0}, {stop_, POLLIN, 0}}};
  while (true) {
    const int ready = poll(events.data(), events.size(), Milliseconds(kill_at - now()));
    if (ready < 0 && errno == EINTR) continue;
    if (now() >= kill_at) {
      kill(-shell, SIGKILL);
      kill_at = absl::InfiniteDuration();
    }
    if (events[2].revents != 0) {
      stopped = true;
      kill_at = now() + patience_;
      events[2].fd = -1;
      kill(-shell, SIGTERM);
    }
    if (output >= 0 && !lines->ReadSome(output)) events[1].fd = -1;
    if (events[0].revents != 0) break;
  }
  int status = 0;
  while (waitpid(shell, &status, 0) < 0 && errno == EINTR) {
  }
  if (stopped) return absl::CancelledError("stopped");
  return status;
}

absl::Status ShellCommand::Run(const Variables& variables,
                               absl::FunctionRef<void(absl::string_view line)> line) {
  int pipes[2];
  if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) != 0) return ErrnoToStatus(errno, "make", "a pipe");
  const auto close_pipe = absl::MakeCleanup([&] { close(pipes[0]); });
  // The command's end of the pipe blocks, as programs expect.
  fcntl(pipes[1], F_SETFL, 0);
  const absl::StatusOr<pid_t> shell =
      Spawn(command_, variables, {.output = pipes[1], .errors = pipes[1]});
  close(pipes[1]);
  DISTRO_RETURN_IF_ERROR(shell.status());
  Lines lines(line);
  const absl::StatusOr<int> status = Await(*shell, pipes[0], &lines);
  lines.ReadSome(pipes[0]);
  lines.End();
  DISTRO_RETURN_IF_ERROR(status.status());
  return EndOf(*status, lines.last());
}

absl::StatusOr<std::string> ShellCommand::Filter(absl::string_view input) {
  MemoryFile given, output, errors;
  for (const MemoryFile* file : {&given, &output, &errors})
    if (file->fd() < 0) return ErrnoToStatus(errno, "make", "a file in memory");
  DISTRO_RETURN_IF_ERROR(given.Fill(input));
  DISTRO_ASSIGN_OR_RETURN(
      const pid_t shell,
      Spawn(command_, {}, {.input = given.fd(), .output = output.fd(), .errors = errors.fd()}));
  DISTRO_ASSIGN_OR_RETURN(const int status, Await(shell, /*output=*/-1, nullptr));
  DISTRO_ASSIGN_OR_RETURN(const std::string complaints, errors.Contents(kMaxFilteredBytes));
  Lines lines([](absl::string_view) {});
  lines.Add(complaints);
  lines.End();
  DISTRO_RETURN_IF_ERROR(EndOf(status, lines.last()));
  return output.Contents(kMaxFilteredBytes);
}

}  // namespace distro
