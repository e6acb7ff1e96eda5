#include "server/status/worker_problems.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace distro::server {
namespace {

constexpr absl::Duration kRecentlyGone = absl::Minutes(10);

// `bytes` per second as text: three digits and a unit.
std::string RateText(double bytes) {
  if (bytes >= 1e6) return absl::StrFormat("%.3g MB/s", bytes / 1e6);
  return absl::StrFormat("%.3g kB/s", bytes / 1e3);
}

template <typename Better>
std::optional<double> Median(std::vector<double> values, Better better) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values, better);
  return values[(values.size() - 1) / 2];
}

bool InRounds(const Worker& worker) { return worker.takes_part() && worker.weight() > 0; }

// How many rounds went on without its work, as the end of a sentence.
std::string Uncounted(const WorkerFacts& facts) {
  if (facts.rounds.missed_in_a_row == 0) return "";
  return absl::StrFormat("; the last %d did not count its work", facts.rounds.missed_in_a_row);
}

bool DoesNotCount(const WorkerFacts& facts) {
  const bool on_probation = facts.rounds.excluded == "probation";
  return facts.worker.takes_part() &&
         facts.rounds.missed_in_a_row >= (on_probation ? kProbationRounds : kMissedRounds);
}

std::optional<Problem> ProblemOfState(const WorkerFacts& facts) {
  const Worker& worker = facts.worker;
  switch (worker.state) {
    case v1::MEMBER_STATE_QUARANTINED:
      return Problem{Severity::kBad, absl::StrCat("Quarantined: ", worker.reason),
                     "DistroWorkerNotContributing"};
    case v1::MEMBER_STATE_SUSPECT:
      return Problem{Severity::kBad,
                     absl::StrFormat("Silent for %.0f s: no heartbeat and no frame",
                                     absl::ToDoubleSeconds(facts.silence)),
                     "DistroWorkerStale"};
    case v1::MEMBER_STATE_LEFT:
      if (worker.returning)
        return Problem{Severity::kWarning, "Has not come back since the aggregator started",
                       "DistroWorkerStale"};
      if (facts.in_state < kRecentlyGone)
        return Problem{Severity::kWarning, absl::StrCat("Gone: ", worker.reason),
                       "DistroWorkerStale"};
      return Problem{.severity = Severity::kGone};
    case v1::MEMBER_STATE_LATE:
      return Problem{Severity::kBad,
                     absl::StrCat("Late: rounds do not wait for it", Uncounted(facts),
                                  worker.probation_left > 0 ? "; its probation goes on" : ""),
                     "DistroUpdatesExcluded"};
    default:
      return std::nullopt;
  }
}

bool Below(std::optional<double> value, std::optional<double> typical) {
  return value && typical && *value * kSlowFactor < *typical;
}

bool IsSlow(const WorkerFacts& facts, const Typical& typical) {
  if (!facts.rounds.update_seconds || !typical.update_seconds) return false;
  const double seconds = *facts.rounds.update_seconds;
  return seconds > kSlowFactor * *typical.update_seconds &&
         seconds > *typical.update_seconds + kSlowSeconds;
}

// Why a worker's updates arrive later than those of the others.
Problem WhySlow(const WorkerFacts& facts, const Typical& typical) {
  const std::string in = absl::StrFormat("its updates are in after %.1f s, most after %.1f s",
                                         *facts.rounds.update_seconds, *typical.update_seconds);
  const WorkerRate& rate = facts.rate;
  if (Below(rate.up_goodput, typical.up_goodput)) {
    return {Severity::kBad,
            absl::StrCat("Slow uplink: ", RateText(*rate.up_goodput), ", most have ",
                         RateText(*typical.up_goodput), "; ", in),
            "DistroUplinkSaturated"};
  }
  if (Below(rate.down_goodput, typical.down_goodput)) {
    return {Severity::kBad,
            absl::StrCat("Slow downlink: ", RateText(*rate.down_goodput), ", most have ",
                         RateText(*typical.down_goodput), "; ", in),
            "DistroUpdatesExcluded"};
  }
  return {Severity::kWarning, absl::StrCat("Slow, and not for its link: ", in),
          "DistroUpdatesExcluded"};
}

}  // namespace

absl::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kBad:
      return "bad";
    case Severity::kWarning:
      return "warning";
    case Severity::kGood:
      return "good";
    case Severity::kGone:
      break;
  }
  return "gone";
}

Typical TypicalOf(const std::vector<WorkerFacts>& workers) {
  std::vector<double> update_seconds, up, down;
  for (const WorkerFacts& facts : workers) {
    if (!InRounds(facts.worker)) continue;
    if (facts.rounds.update_seconds) update_seconds.push_back(*facts.rounds.update_seconds);
    if (facts.rate.up_goodput) up.push_back(*facts.rate.up_goodput);
    if (facts.rate.down_goodput) down.push_back(*facts.rate.down_goodput);
  }
  return {.update_seconds = Median(update_seconds, std::less<>()),
          .up_goodput = Median(up, std::greater<>()),
          .down_goodput = Median(down, std::greater<>())};
}

Problem ProblemOf(const WorkerFacts& facts, const Typical& typical) {
  if (auto problem = ProblemOfState(facts)) return *problem;
  if (InRounds(facts.worker) && IsSlow(facts, typical)) return WhySlow(facts, typical);
  if (DoesNotCount(facts)) {
    return {Severity::kBad,
            absl::StrFormat("Not included for %d rounds: %s", facts.rounds.missed_in_a_row,
                            facts.rounds.excluded),
            "DistroWorkerNotContributing"};
  }
  if (facts.worker.state == v1::MEMBER_STATE_JOINING && !facts.worker.resync.empty())
    return {Severity::kWarning, absl::StrCat("Starts over: ", facts.worker.resync),
            "DistroReplicasDiverged"};
  return {};
}

}  // namespace distro::server
