#include "tests/integration/killed_aggregator.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tests/testing/child_process.h"

namespace distro::testing {
namespace {

constexpr char kListening[] = "listening ";
constexpr char kKilled[] = "killed at ";

}  // namespace

KilledAggregator::KilledAggregator(std::vector<std::string> flags, std::vector<std::string> points)
    : flags_(std::move(flags)), points_(std::move(points)), supervisor_([this] { Supervise(); }) {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&listening_));
}

void KilledAggregator::Stop() {
  if (!supervisor_.joinable()) return;
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    if (child_ != 0) kill(child_, SIGTERM);
  }
  supervisor_.join();
}

ChannelOptions KilledAggregator::channel() const {
  ChannelOptions options;
  options.insecure = true;
  options.aggregator = port_.address();
  return options;
}

std::string KilledAggregator::log() const {
  absl::MutexLock lock(&mu_);
  return log_;
}

std::vector<std::string> KilledAggregator::killed() const {
  std::vector<std::string> killed;
  for (const absl::string_view line : absl::StrSplit(log(), '\n')) {
    if (absl::StartsWith(line, kKilled)) killed.emplace_back(line);
  }
  return killed;
}

std::vector<std::string> KilledAggregator::Arguments(size_t start) const {
  std::vector<std::string> arguments;
  arguments.emplace_back(start < points_.size() ? points_[start].c_str() : "none");
  arguments.insert(arguments.end(), flags_.begin(), flags_.end());
  arguments.push_back("--listen=" + port_.address());
  arguments.emplace_back("--http=127.0.0.1:0");
  return arguments;
}

void KilledAggregator::Supervise() {
  for (size_t start = 0;; ++start) {
    ChildProcess child(DISTRO_KILL_POINT_AGGREGATOR, Arguments(start));
    {
      absl::MutexLock lock(&mu_);
      if (stopping_) return;
      child_ = child.pid();
    }
    if (child.FindLine(kListening).has_value()) {
      absl::MutexLock lock(&mu_);
      listening_ = true;
    }
    const int status = child.Wait();
    absl::MutexLock lock(&mu_);
    child_ = 0;
    log_ += child.log();
    if (stopping_) return;
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    EXPECT_TRUE(killed && start < points_.size()) << child.log();
  }
}

}  // namespace distro::testing
