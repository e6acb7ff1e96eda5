#include "worker/fsdp/rank_threads.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "common/base/steady_cond_var.h"

namespace distro::worker {

struct RankThreads::State {
  State(std::vector<std::unique_ptr<Communicator>> all, const RankThreadsOptions& given)
      : communicators(std::move(all)), options(given), busy(communicators.size(), false) {}

  void RunRank(int rank);
  void Report(int rank, const absl::Status& status);
  std::string Busy() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  const std::vector<std::unique_ptr<Communicator>> communicators;
  const RankThreadsOptions options;
  std::vector<std::thread> threads;  // of the owner

  absl::Mutex mu;
  SteadyCondVar changed;
  std::shared_ptr<const Body> body ABSL_GUARDED_BY(mu);
  std::string phase ABSL_GUARDED_BY(mu);
  uint64_t work ABSL_GUARDED_BY(mu) = 0;  // pieces given out
  std::vector<bool> busy ABSL_GUARDED_BY(mu);
  bool stop ABSL_GUARDED_BY(mu) = false;
  absl::Status failed ABSL_GUARDED_BY(mu);
};

// Prefers the original failure over a status that only repeats it.
void RankThreads::State::Report(int rank, const absl::Status& status) {
  {
    absl::MutexLock lock(&mu);
    if (failed.ok() || (absl::IsAborted(failed) && !absl::IsAborted(status))) {
      failed = absl::Status(status.code(),
                            absl::StrCat("rank ", rank, ": ", phase, ": ", status.message()));
      status.ForEachPayload(
          [&](absl::string_view url, const absl::Cord& value) { failed.SetPayload(url, value); });
    }
  }
  communicators[rank]->Abort(status);
}

void RankThreads::State::RunRank(int rank) {
  absl::Status ready = CatchTorch("start", [&] {
    SetTorchThreads(options.torch_threads);
    return options.start ? options.start(rank) : absl::OkStatus();
  });
  for (uint64_t done = 0;; ++done) {
    std::shared_ptr<const Body> piece;
    {
      absl::MutexLock lock(&mu);
      changed.WaitFor(&mu, absl::InfiniteDuration(), [&] {
        mu.AssertHeld();
        return work != done || stop;
      });
      if (work == done) return;
      piece = body;
    }
    const absl::Status status =
        ready.ok() ? CatchTorch("exception", [&] { return (*piece)(rank, *communicators[rank]); })
                   : ready;
    if (!status.ok()) Report(rank, status);
    piece.reset();
    absl::MutexLock lock(&mu);
    busy[rank] = false;
    changed.SignalAll();
  }
}

std::string RankThreads::State::Busy() const {
  std::vector<std::string> names;
  for (size_t rank = 0; rank < busy.size(); ++rank) {
    if (busy[rank]) names.push_back(absl::StrCat("rank ", rank));
  }
  return absl::StrJoin(names, " and ");
}

RankThreads::RankThreads(std::vector<std::unique_ptr<Communicator>> communicators,
                         const RankThreadsOptions& options)
    : state_(std::make_shared<State>(std::move(communicators), options)) {
  for (int rank = 0; rank < ranks(); ++rank) {
    state_->threads.emplace_back([state = state_, rank] { state->RunRank(rank); });
  }
}

RankThreads::~RankThreads() {
  std::vector<bool> busy;
  {
    absl::MutexLock lock(&state_->mu);
    state_->stop = true;
    state_->changed.SignalAll();
    busy = state_->busy;
  }
  for (int rank = 0; rank < ranks(); ++rank) {
    busy[rank] ? state_->threads[rank].detach() : state_->threads[rank].join();
  }
}

bool RankThreads::stuck() const {
  absl::MutexLock lock(&state_->mu);
  return std::find(state_->busy.begin(), state_->busy.end(), true) != state_->busy.end();
}

int RankThreads::ranks() const { return static_cast<int>(state_->communicators.size()); }

absl::Status RankThreads::Run(absl::string_view phase, const Body& body) {
  State& state = *state_;
  absl::MutexLock lock(&state.mu);
  if (!state.failed.ok()) return state.failed;
  state.phase = std::string(phase);
  state.body = std::make_shared<const Body>(body);
  state.busy.assign(ranks(), true);
  ++state.work;
  state.changed.SignalAll();
  // The watchdog runs from the return of the first on.
  const auto someone_is_back = [&] {
    state.mu.AssertHeld();
    return state.busy.empty() || std::ranges::find(state.busy, false) != state.busy.end();
  };
  const auto all_are_back = [&] {
    state.mu.AssertHeld();
    return std::ranges::find(state.busy, true) == state.busy.end();
  };
  state.changed.WaitFor(&state.mu, absl::InfiniteDuration(), someone_is_back);
  if (!state.changed.WaitFor(&state.mu, state.options.watchdog, all_are_back)) {
    state.failed = absl::DeadlineExceededError(
        absl::StrCat(phase, ": ", state.Busy(), " did not return within ",
                     absl::FormatDuration(state.options.watchdog), " of the others",
                     state.failed.ok() ? "" : "; ", state.failed.message()));
    return state.failed;
  }
  state.body.reset();
  return state.failed;
}

}  // namespace distro::worker
