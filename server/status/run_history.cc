#include "server/status/run_history.h"

#include <algorithm>

#include "common/base/median.h"
#include "common/run/record/committed_round.h"

namespace distro::server {
namespace {

constexpr size_t kUpdateTimes = 9;

std::string WhyExcluded(const v1::RoundHeader& header, int index, int included) {
  const v1::Member& member = header.members(index);
  if (included == header.segments_size()) return "";
  if (member.abstained()) return "abstained";
  if (member.weight() == 0 && member.incarnation() != 0) return "probation";
  return included > 0 ? "partly late" : "late";
}

}  // namespace

RunHistory::Member* RunHistory::Find(const std::string& worker) {
  const auto it = workers_.find(worker);
  if (it != workers_.end()) {
    it->second.seen = rounds_;
    return &it->second;
  }
  if (workers_.size() >= kHistoryWorkers) {
    const auto oldest =
        std::ranges::min_element(workers_, {}, [](const auto& w) { return w.second.seen; });
    if (oldest->second.seen == rounds_) return nullptr;
    workers_.erase(oldest);
  }
  Member* const member = &workers_[worker];
  member->seen = rounds_;
  return member;
}

void RunHistory::OnRoundOpened(RoundId round, int expected) {
  absl::MutexLock lock(&mu_);
  opened_at_ = clock_->MonotonicNow();
  most_expected_ = std::max(most_expected_, expected);
}

void RunHistory::OnStateHashMismatch(int workers) {
  absl::MutexLock lock(&mu_);
  mismatch_at_ = clock_->MonotonicNow();
}

void RunHistory::OnUpdateTimed(const std::string& worker, RoundId round,
                               absl::Duration since_open) {
  absl::MutexLock lock(&mu_);
  Member* const member = Find(worker);
  if (member == nullptr) return;
  member->update_seconds.push_back(absl::ToDoubleSeconds(since_open));
  if (member->update_seconds.size() > kUpdateTimes) member->update_seconds.pop_front();
}

void RunHistory::OnRoundCommitted(const CommittedRoundInfo& info) {
  absl::MutexLock lock(&mu_);
  RecentRound round{.opened_at = clock_->MonotonicNow() - info.duration,
                    .committed_at = clock_->MonotonicNow(),
                    .result_bytes = info.result_bytes};
  for (int i = 0; i < info.header->members_size(); ++i) TakeMember(*info.header, i, &round);
  TakeLosses(info);
  last_loss_missing_ = !info.loss && round.counting > round.excluded;
  const bool empty = round.counting > 0 && round.abstained == round.counting;
  empty_rounds_ = empty ? empty_rounds_ + 1 : 0;
  recent_.push_back(round);
  if (recent_.size() > kRecentRounds) recent_.pop_front();
  ++rounds_;
  opened_at_.reset();
}

void RunHistory::TakeLosses(const CommittedRoundInfo& info) {
  if (info.loss) loss_.Add(info.header->round(), *info.loss);
  if (!info.eval_loss || info.eval_loss == last_eval_loss_) return;
  last_eval_loss_ = info.eval_loss;
  eval_loss_.Add(info.header->round(), *info.eval_loss);
}

void RunHistory::TakeMember(const v1::RoundHeader& header, int index, RecentRound* round) {
  const int included = IncludedSegments(header, index);
  const std::string excluded = WhyExcluded(header, index, included);
  if (excluded != "probation") {
    ++round->counting;
    round->excluded += excluded.empty() ? 0 : 1;
    round->abstained += excluded == "abstained" ? 1 : 0;
  }
  Member* const member = Find(header.members(index).name());
  if (member == nullptr) return;
  WorkerRounds& rounds = member->rounds;
  ++rounds.rounds;
  rounds.excluded = excluded;
  if (included > 0) {
    ++rounds.included;
    rounds.last_included = header.round();
    rounds.missed_in_a_row = 0;
    const v1::Member& recorded = header.members(index);
    if (recorded.local_steps() > 0) rounds.local_steps = recorded.local_steps();
    rounds.weight = recorded.weight();
  } else {
    ++rounds.missed_in_a_row;
  }
}

// Measures whole rounds from the opening of the first. Also counts the time since the last commit
// if it is longer than a round, so that the pace of a stalled run decreases.
void RunHistory::FillPace(HistoryView* view) const {
  if (recent_.empty()) return;
  std::vector<double> seconds;
  double bytes = 0;
  int counting = 0, excluded = 0;
  for (const RecentRound& round : recent_) {
    seconds.push_back(absl::ToDoubleSeconds(round.committed_at - round.opened_at));
    bytes += static_cast<double>(round.result_bytes);
    counting += round.counting;
    excluded += round.excluded;
  }
  const auto count = static_cast<double>(recent_.size());
  const absl::Duration took = recent_.back().committed_at - recent_.front().opened_at;
  const absl::Duration silence = clock_->MonotonicNow() - recent_.back().committed_at;
  const absl::Duration spare = std::max(silence - took / count, absl::ZeroDuration());
  view->round_seconds = Median(seconds);
  view->result_bytes = bytes / count;
  if (took + spare > absl::ZeroDuration())
    view->rounds_a_minute = 60 * count / absl::ToDoubleSeconds(took + spare);
  if (counting > 0) view->excluded_ratio = static_cast<double>(excluded) / counting;
}

HistoryView RunHistory::View() const {
  absl::MutexLock lock(&mu_);
  HistoryView view{.loss = loss_.Points(), .eval_loss = eval_loss_.Points(), .rounds = rounds_};
  FillPace(&view);
  if (opened_at_) view.open_for = clock_->MonotonicNow() - *opened_at_;
  if (mismatch_at_) view.since_mismatch = clock_->MonotonicNow() - *mismatch_at_;
  view.last_loss_missing = last_loss_missing_;
  view.empty_rounds = empty_rounds_;
  view.most_expected = most_expected_;
  for (const auto& [name, member] : workers_) {
    WorkerRounds& rounds = view.workers[name] = member.rounds;
    if (!member.update_seconds.empty())
      rounds.update_seconds = Median({member.update_seconds.begin(), member.update_seconds.end()});
  }
  return view;
}

}  // namespace distro::server
