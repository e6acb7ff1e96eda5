#include "tests/integration/killed_aggregator.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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
  mu_.Await(absl::Condition(
      +[](std::string* address) { return !address->empty(); }, &address_));
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
  absl::MutexLock lock(&mu_);
  options.aggregator = address_;
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
  absl::MutexLock lock(&mu_);
  arguments.push_back(absl::StrCat("--listen=", address_.empty() ? "127.0.0.1:0" : address_));
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
    if (const std::optional<std::string> line = child.FindLine(kListening)) {
      absl::MutexLock lock(&mu_);
      address_ = line->substr(line->find(kListening) + sizeof(kListening) - 1);
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
