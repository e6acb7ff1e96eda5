#include "tests/testing/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "absl/strings/match.h"

extern char** environ;

namespace distro::testing {

ChildProcess::ChildProcess(const std::string& program, const std::vector<std::string>& flags) {
  // It ends with this process, also when ctest kills the test.
  std::vector<std::string> arguments = {"/usr/bin/setpriv", "--pdeathsig", "KILL", "--", program};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const std::string temporary = "TMPDIR=" + temporary_.path();
  std::vector<char*> environment = {const_cast<char*>(temporary.c_str())};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!absl::StartsWith(*entry, "TMPDIR=")) environment.push_back(*entry);
  }
  environment.push_back(nullptr);
  int log[2];
  EXPECT_EQ(pipe2(log, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, log[1], 2);
  EXPECT_EQ(posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environment.data()), 0)
      << program;
  posix_spawn_file_actions_destroy(&actions);
  close(log[1]);
  log_ = fdopen(log[0], "r");
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  fclose(log_);
}

bool ChildProcess::ReadLine(std::string* line) {
  line->clear();
  for (int c = fgetc(log_); c != EOF; c = fgetc(log_)) {
    if (c == '\n') break;
    line->push_back(static_cast<char>(c));
  }
  if (line->empty() && feof(log_)) return false;
  log_text_ += *line + '\n';
  return true;
}

std::optional<std::string> ChildProcess::FindLine(absl::string_view text) {
  std::string line;
  while (ReadLine(&line)) {
    if (absl::StrContains(line, text)) return line;
  }
  return std::nullopt;
}

std::string ChildProcess::AwaitLine(absl::string_view text) {
  if (const auto line = FindLine(text)) return *line;
  ADD_FAILURE() << "the program ended without \"" << text << "\":\n" << log_text_;
  return "";
}

int ChildProcess::Wait() {
  std::string line;
  while (ReadLine(&line)) {
  }
  int status = 0;
  waitpid(std::exchange(pid_, 0), &status, 0);
  return status;
}

int ChildProcess::ExitCode() {
  const int status = Wait();
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace distro::testing
