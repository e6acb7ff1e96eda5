#include "server/round/round_policy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace distro::server {
namespace {

constexpr size_t kNamesInReason = 5;

struct SegmentView {
  int in = 0;
  bool all_expected = true;  // in or abstained
  bool all_answered = true;  // every worker with samples, expected or not
  bool any_abstained = false;
  std::vector<std::string> missing;  // names of the expected ones
};

SegmentView Look(const RoundFacts& round, const RoundSegment& segment) {
  SegmentView view;
  for (size_t i = 0; i < round.workers.size(); ++i) {
    const RoundWorker& worker = round.workers[i];
    // A worker on probation neither delays a segment nor helps to close it.
    if (!worker.counts) continue;
    if (segment.in[i]) {
      ++view.in;
      continue;
    }
    if (worker.abstained) {
      view.any_abstained = true;
      continue;
    }
    view.all_answered = false;
    if (!worker.expected) continue;
    view.all_expected = false;
    view.missing.push_back(worker.name);
  }
  return view;
}

std::string Names(const std::vector<std::string>& names) {
  if (names.size() <= kNamesInReason) return absl::StrJoin(names, ", ");
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + kNamesInReason, ", "), " and ",
                      names.size() - kNamesInReason, " more");
}

// Workers that have not answered and are not expected but may still send; their updates may or may
// not count.
std::vector<std::string> OthersWhoMayCome(const RoundFacts& round, const RoundSegment& segment,
                                          bool counts) {
  std::vector<std::string> names;
  for (size_t i = 0; i < round.workers.size(); ++i) {
    const RoundWorker& worker = round.workers[i];
    const bool answered = segment.in[i] || worker.abstained;
    if (worker.counts == counts && !answered && !worker.expected) names.push_back(worker.name);
  }
  return names;
}

bool EnoughCanCome(const RoundFacts& round, const RoundSegment& segment, int min_workers) {
  int possible = 0;
  for (size_t i = 0; i < round.workers.size(); ++i) {
    const RoundWorker& worker = round.workers[i];
    const bool may_come = worker.in_session && !worker.abstained;
    if (worker.counts && (segment.in[i] || may_come)) ++possible;
  }
  return possible >= min_workers;
}

std::string WaitReason(const RoundFacts& round, const RoundSegment& segment,
                       const SegmentView& view, const RoundPolicyOptions& options) {
  if (!view.missing.empty()) return absl::StrCat("waiting for ", Names(view.missing));
  std::string who = "nobody else has samples";
  if (const auto names = OthersWhoMayCome(round, segment, true); !names.empty()) {
    who = absl::StrCat("waiting for ", Names(names));
  } else if (const auto idle = OthersWhoMayCome(round, segment, false); !idle.empty()) {
    who = absl::StrCat("those of ", Names(idle), " do not count yet");
  }
  return absl::StrCat(view.in, " of min_workers ", options.min_workers, " updates: ", who);
}

}  // namespace

RoundDecision Decide(const RoundFacts& round, absl::Duration now,
                     const RoundPolicyOptions& options) {
  const bool past_deadline = now - round.opened_at >= options.deadline;
  const size_t n = round.segments.size();
  RoundDecision decision{
      .action = RoundAction::kCommit, .segments = {}, .reason = "all segments are closed"};
  RoundDecision wait{.segments = {}, .reason = ""};
  for (size_t i = 0; i < n; ++i) {
    // In the order in which workers send: a deadline does not cut the same segments every round.
    const size_t s = (round.round.value() + i) % n;
    const RoundSegment& segment = round.segments[s];
    if (segment.closed) continue;
    const SegmentView view = Look(round, segment);
    // No further update can come, so that waiting for min_workers would not end.
    const bool nobody_else = view.any_abstained && view.all_answered;
    if ((view.in >= options.min_workers && (view.all_expected || past_deadline)) || nobody_else) {
      decision.action = RoundAction::kClose;
      decision.segments.push_back(SegmentId(static_cast<uint32_t>(s)));
      if (!view.missing.empty()) {
        decision.by_deadline = true;
        decision.reason = absl::StrCat("deadline, without ", Names(view.missing));
      } else if (!decision.by_deadline) {
        decision.reason =
            view.in < options.min_workers ? "the others abstained" : "all expected are in";
      }
    } else if (wait.reason.empty()) {
      wait.reason = WaitReason(round, segment, view, options);
      wait.enough_can_come = EnoughCanCome(round, segment, options.min_workers);
    }
  }
  if (decision.action == RoundAction::kClose || wait.reason.empty()) return decision;
  return wait;
}

}  // namespace distro::server
