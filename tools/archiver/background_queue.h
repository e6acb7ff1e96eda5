// Runs jobs in order on another thread. When too many wait, the oldest waiting job is dropped.
// Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace distro::tools {

template <typename Job>
class BackgroundQueue {
 public:
  // `work` is called on the queue's thread and must end soon after its owner stops. At most `most`
  // jobs wait.
  BackgroundQueue(size_t most, std::function<void(const Job&)> work)
      : most_(most), work_(std::move(work)), thread_([this] { Run(); }) {}
  // Drops the waiting jobs; finishes the running one.
  ~BackgroundQueue() {
    {
      absl::MutexLock lock(&mu_);
      closed_ = true;
      jobs_.clear();
    }
    thread_.join();
  }
  BackgroundQueue(const BackgroundQueue&) = delete;
  BackgroundQueue& operator=(const BackgroundQueue&) = delete;

  // False: the oldest waiting job was dropped to make room.
  bool Add(Job job) {
    absl::MutexLock lock(&mu_);
    jobs_.push_back(std::move(job));
    if (jobs_.size() <= most_) return true;
    jobs_.pop_front();
    return false;
  }

  // Blocks until nothing waits or runs.
  void AwaitIdle() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(this, &BackgroundQueue::Idle));
  }

 private:
  bool Idle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return jobs_.empty() && !working_; }
  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return closed_ || !jobs_.empty(); }

  void Run() {
    absl::MutexLock lock(&mu_);
    while (true) {
      mu_.Await(absl::Condition(this, &BackgroundQueue::HasNews));
      if (jobs_.empty()) return;
      const Job job = std::move(jobs_.front());
      jobs_.pop_front();
      working_ = true;
      mu_.Unlock();
      work_(job);
      mu_.Lock();
      working_ = false;
    }
  }

  // Constant after construction.
  const size_t most_;
  const std::function<void(const Job&)> work_;

  absl::Mutex mu_;
  std::deque<Job> jobs_ ABSL_GUARDED_BY(mu_);
  bool working_ ABSL_GUARDED_BY(mu_) = false;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: starts after the other members are initialized
};

}  // namespace distro::tools
