#include "server/status/worker_rows.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "server/status/worker_problems.h"

namespace distro::server {
namespace {

using nlohmann::json;

WorkerFacts FactsOf(const StatusFacts& facts, size_t index) {
  const RunStatus& status = facts.status;
  WorkerFacts worker{.worker = status.workers[index],
                     .in_state = status.now - status.since[index],
                     .silence = status.now - status.workers[index].last_seen,
                     .agreement = status.agreement[index],
                     .rounds = {},
                     .rate = facts.rates->Of(status.workers[index].name)};
  const auto rounds = facts.history.workers.find(worker.worker.name);
  if (rounds != facts.history.workers.end()) worker.rounds = rounds->second;
  if (!worker.worker.in_session()) worker.rate = {};
  return worker;
}

json ReadingsOf(const v1::WorkerTelemetry* readings) {
  if (readings == nullptr) {
    json unknown = ReadingsOf(&v1::WorkerTelemetry::default_instance());
    for (json& value : unknown) value = nullptr;
    return unknown;
  }
  return {
      {"loss", readings->has_loss() ? json(readings->loss()) : json(nullptr)},
      {"own_evaluation_loss",
       readings->has_own_evaluation_loss() ? json(readings->own_evaluation_loss()) : json(nullptr)},
      {"tokens", readings->tokens()},
      {"sent_bytes", readings->sent_bytes()},
      {"received_bytes", readings->received_bytes()},
      {"received_snapshot_bytes", readings->transfer().received_snapshot_bytes()},
      {"mirror_bytes", readings->transfer().mirror_bytes()},
      {"mirror_failures", readings->transfer().mirror_failures()}};
}

json RowOf(const WorkerFacts& facts, const Problem& problem, uint64_t head) {
  const Worker& worker = facts.worker;
  const WorkerRate& rate = facts.rate;
  const bool follows = worker.in_session() && worker.sequence > 0 && worker.next_round <= head;
  return {{"name", worker.name},
          {"state", MemberStateName(worker.state)},
          {"reason", worker.reason},
          {"severity", SeverityName(problem.severity)},
          {"problem", problem.what},
          {"runbook", problem.runbook},
          {"in_state_seconds", absl::ToDoubleSeconds(facts.in_state)},
          {"silent_seconds",
           worker.heard() ? json(absl::ToDoubleSeconds(facts.silence)) : json(nullptr)},
          {"lag_rounds", follows ? json(head - worker.next_round) : json(nullptr)},
          {"agreement_score", facts.agreement},
          {"probation_left", worker.probation_left},
          {"own_tokens", worker.own_tokens},
          {"tokens_per_second", OrNull(rate.tokens_per_second)},
          {"up_bytes_per_second", OrNull(rate.up_bytes_per_second)},
          {"down_bytes_per_second", OrNull(rate.down_bytes_per_second)},
          {"up_goodput", OrNull(rate.up_goodput)},
          {"down_goodput", OrNull(rate.down_goodput)},
          {"upload_ratio", OrNull(rate.upload_ratio)},
          {"wait_ratio", OrNull(rate.wait_ratio)},
          {"download_ratio", OrNull(rate.download_ratio)},
          {"update_seconds", OrNull(facts.rounds.update_seconds)},
          {"rounds", facts.rounds.rounds},
          {"included_rounds", facts.rounds.included},
          {"last_included_round", OrNull(facts.rounds.last_included)},
          {"missed_in_a_row", facts.rounds.missed_in_a_row},
          {"local_steps", OrNull(facts.rounds.local_steps)},
          {"weight", OrNull(facts.rounds.weight)},
          {"excluded", facts.rounds.excluded}};
}

}  // namespace

json WorkerRows(const StatusFacts& facts) {
  std::map<std::string, const v1::WorkerTelemetry*> readings;
  for (const WorkerReport& report : facts.reports) readings[report.worker] = report.telemetry.get();
  std::vector<WorkerFacts> workers;
  for (size_t i = 0; i < facts.status.workers.size(); ++i) workers.push_back(FactsOf(facts, i));
  const Typical typical = TypicalOf(workers);
  std::vector<std::pair<Severity, json>> rows;
  for (const WorkerFacts& worker : workers) {
    const Problem problem = ProblemOf(worker, typical);
    json row = RowOf(worker, problem, facts.status.round.value());
    const auto last = readings.find(worker.worker.name);
    row.update(ReadingsOf(last == readings.end() ? nullptr : last->second));
    rows.emplace_back(problem.severity, std::move(row));
  }
  std::ranges::stable_sort(rows, {}, &std::pair<Severity, json>::first);
  json array = json::array();
  for (auto& [severity, row] : rows) array.push_back(std::move(row));
  return array;
}

}  // namespace distro::server
