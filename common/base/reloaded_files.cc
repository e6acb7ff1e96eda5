#include "common/base/reloaded_files.h"

#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "common/base/file_watch.h"
#include "common/base/status_macros.h"
#include "common/base/steady_cond_var.h"

namespace distro {

struct ReloadedFiles::Shared {
  Shared(std::vector<std::string> paths_in, Read read_in)
      : paths(std::move(paths_in)), read(std::move(read_in)) {}

  // Whether the thread is done, or waits for the disk: it then uses nothing but this.
  bool Left() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) { return done || looking_since; }

  const std::vector<std::string> paths;
  const Read read;
  absl::Mutex mu;
  SteadyCondVar changed;                   // ended, done
  bool ended ABSL_GUARDED_BY(mu) = false;  // the owner is gone
  bool done ABSL_GUARDED_BY(mu) = false;
  std::optional<absl::Duration> looking_since ABSL_GUARDED_BY(mu);
  bool late ABSL_GUARDED_BY(mu) = false;  // the look was told to take too long
  absl::Status problem ABSL_GUARDED_BY(mu);
  Value value ABSL_GUARDED_BY(mu);
};

ReloadedFiles::ReloadedFiles(std::vector<std::string> paths, Read read, Told told,
                             const Clock* clock)
    : told_(std::move(told)),
      clock_(clock),
      shared_(std::make_shared<Shared>(std::move(paths), std::move(read))) {}

ReloadedFiles::~ReloadedFiles() {
  if (!thread_.joinable()) return;
  bool done;
  {
    absl::MutexLock lock(&shared_->mu);
    shared_->ended = true;
    shared_->changed.SignalAll();
    shared_->mu.Await(absl::Condition(shared_.get(), &Shared::Left));
    done = shared_->changed.WaitFor(&shared_->mu, absl::Seconds(1), [this] {
      shared_->mu.AssertHeld();
      return shared_->done;
    });
  }
  if (done) {
    thread_.join();
  } else {
    thread_.detach();  // until the disk answers, or the process ends
  }
}

bool ReloadedFiles::AwaitLook(Shared* shared) {
  absl::MutexLock lock(&shared->mu);
  const auto ended = [shared] {
    shared->mu.AssertHeld();
    return shared->ended;
  };
  if (shared->changed.WaitFor(&shared->mu, kLookAtFilesEvery, ended)) return false;
  shared->looking_since = clock_->MonotonicNow();
  return true;
}

absl::Status ReloadedFiles::Start() {
  FileWatch watch(shared_->paths);
  DISTRO_ASSIGN_OR_RETURN(Value first, shared_->read());
  absl::MutexLock lock(&shared_->mu);
  shared_->value = std::move(first);
  // This object is used only while it has not ended.
  thread_ = std::thread([this, shared = shared_, watch = std::move(watch)]() mutable {
    while (AwaitLook(shared.get()) && Look(shared.get(), &watch)) {
    }
    absl::MutexLock end(&shared->mu);
    shared->done = true;
    shared->changed.SignalAll();
  });
  return absl::OkStatus();
}

bool ReloadedFiles::Look(Shared* shared, FileWatch* watch) {
  const bool changed = watch->Changed();
  bool failed;
  {
    absl::MutexLock lock(&shared->mu);
    failed = !shared->problem.ok();
  }
  std::optional<absl::StatusOr<Value>> read;
  // What stands in the way may go without a change that FileWatch sees: permissions, the time of a
  // certificate, a limit of open files.
  if (changed || failed) read = shared->read();
  absl::StatusOr<Value> now;
  {
    absl::MutexLock lock(&shared->mu);
    shared->looking_since.reset();
    if (shared->ended) return false;
    const bool late = std::exchange(shared->late, false);
    const bool as_before = !read || (!changed && !read->ok());
    if (read) shared->problem = read->status();
    if (!late && as_before) return true;
    if (read && read->ok()) shared->value = **read;
    now = shared->problem.ok() ? absl::StatusOr<Value>(shared->value) : shared->problem;
  }
  told_(now);
  return true;
}

ReloadedFiles::Value ReloadedFiles::Get() {
  problem().IgnoreError();
  absl::MutexLock lock(&shared_->mu);
  return shared_->value;
}

absl::Status ReloadedFiles::problem() {
  const absl::Status late = absl::DeadlineExceededError(
      absl::StrCat(absl::StrJoin(shared_->paths, ", "), ": the disk has not answered for ",
                   absl::FormatDuration(kFilesAnswerWithin)));
  {
    absl::MutexLock lock(&shared_->mu);
    const std::optional<absl::Duration> since = shared_->looking_since;
    if (!since || clock_->MonotonicNow() - *since < kFilesAnswerWithin) return shared_->problem;
    if (std::exchange(shared_->late, true)) return late;
  }
  told_(late);
  return late;
}

}  // namespace distro
