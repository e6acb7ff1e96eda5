#include "common/base/output.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"

namespace distro {
namespace {

constexpr int kPatienceMilliseconds = 1000;

bool Await(int fd, int milliseconds) {
  pollfd stream = {fd, POLLOUT, 0};
  int ready = 0;
  do {
    ready = poll(&stream, 1, milliseconds);
  } while (ready < 0 && errno == EINTR);
  return ready == 1 && (stream.revents & POLLOUT) != 0;
}

// A pipe that has room takes PIPE_BUF bytes at once.
bool WriteAll(int fd, absl::string_view text, int patience_milliseconds) {
  while (!text.empty()) {
    if (!Await(fd, patience_milliseconds)) return false;
    const ssize_t written = write(fd, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    if (written < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

bool HasRoom(int fd) { return Await(fd, 0); }

void OutputLines::Write(absl::string_view lines) {
  if (left_out_ > 0 && HasRoom(fd_)) {
    const std::string note = absl::StrCat("(lines left out that nobody read: ", left_out_, ")\n");
    if (WriteAll(fd_, note, 0)) left_out_ = 0;
  }
  if (!WriteAll(fd_, lines, left_out_ > 0 ? 0 : kPatienceMilliseconds)) ++left_out_;
}

}  // namespace distro
