#include "server/status/status_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/utf8.h"
#include "common/method/methods.h"
#include "nlohmann/json.hpp"
#include "server/session/transition.h"
#include "server/status/run_warnings.h"
#include "server/status/worker_rows.h"

namespace distro::server {
namespace {

using nlohmann::json;

// The report's run, for comparison: "A Preliminary Report on DisTrO", 1.2 B parameters, 32 workers.
constexpr double kReportParameters = 1.2e9;
constexpr double kReportUpBytes = 2.8e6;
constexpr double kReportDownBytes = 86.8e6;
constexpr double kGradientBytes = 4;  // of an element, float32

double Metric(const StatusFacts& facts, absl::string_view name, const MetricLabels& labels = {}) {
  return facts.metrics->Get(absl::StrCat("distro_aggregator_", name), labels);
}

// Null while it is not known.
json MetricOrNull(const StatusFacts& facts, absl::string_view name) {
  return OrNull(facts.metrics->Find(absl::StrCat("distro_aggregator_", name)));
}

json RunPart(const StatusFacts& facts) {
  const RunStatus& status = facts.status;
  return {{"id", facts.run == nullptr ? "" : facts.run->run_id},
          {"state", RunStateName(status.state)},
          {"reason", status.reason},
          {"epoch", status.epoch.value()},
          {"log_hash", ToHex(status.log_hash)},
          {"version", facts.version},
          {"method",
           facts.run == nullptr ? "" : MethodOf(facts.run->config).Describe(facts.run->config)},
          {"insecure", Metric(facts, "insecure") != 0},
          {"parameters", facts.run == nullptr ? 0 : facts.run->layout->elements()},
          {"min_workers", facts.run == nullptr ? 0 : facts.run->config.min_workers()}};
}

json RoundPart(const StatusFacts& facts) {
  const RunStatus& status = facts.status;
  const HistoryView& history = facts.history;
  const auto open = history.open_for;
  const bool has_deadline = status.deadline != absl::InfiniteDuration();
  return {{"number", status.round.value()},
          {"of", facts.run == nullptr ? 0 : facts.status.rounds},
          {"open_seconds", open ? json(absl::ToDoubleSeconds(*open)) : json(nullptr)},
          {"deadline_seconds",
           has_deadline ? json(absl::ToDoubleSeconds(status.deadline)) : json(nullptr)},
          {"typical_seconds", OrNull(history.round_seconds)},
          {"per_minute", OrNull(history.rounds_a_minute)},
          {"complete", Metric(facts, "rounds_total", {{"outcome", "complete"}})},
          {"deadline", Metric(facts, "rounds_total", {{"outcome", "deadline"}})},
          {"excluded_ratio", OrNull(history.excluded_ratio)},
          {"last_commit_timestamp", Metric(facts, "last_round_timestamp_seconds")},
          {"snapshot_round", MetricOrNull(facts, "snapshot_round")},
          {"subscriber_lag_rounds", MetricOrNull(facts, "subscriber_lag_rounds")}};
}

json CurveOf(const std::vector<LossCurve::Point>& points) {
  json curve = json::array();
  for (const LossCurve::Point& point : points) curve.push_back({point.round, point.value});
  return curve;
}

json LossPart(const HistoryView& history) {
  const auto last = [](const std::vector<LossCurve::Point>& points) {
    return points.empty() ? json(nullptr) : json(points.back().value);
  };
  return {{"training", CurveOf(history.loss)},
          {"held_out", CurveOf(history.eval_loss)},
          {"held_out_last", last(history.eval_loss)}};
}

json BytesPart(const StatusFacts& facts) {
  const double updates = Metric(facts, "updates_received_total");
  const double received = Metric(facts, "received_bytes_total", {{"kind", "update"}});
  const double elements =
      facts.run == nullptr ? 0 : static_cast<double>(facts.run->layout->elements());
  return {{"up", updates > 0 ? json(received / updates) : json(nullptr)},
          {"down", OrNull(facts.history.result_bytes)},
          {"gradient", elements * kGradientBytes},
          {"report_parameters", kReportParameters},
          {"report_up", kReportUpBytes},
          {"report_down", kReportDownBytes},
          {"received_update_bytes", received},
          {"sent_result_bytes", Metric(facts, "sent_bytes_total", {{"kind", "result"}})}};
}

json TotalsPart(const StatusFacts& facts) {
  return {{"loss", MetricOrNull(facts, "loss")},
          {"tokens", Metric(facts, "tokens_total")},
          {"updates_received", Metric(facts, "updates_received_total")},
          {"updates_expected", Metric(facts, "updates_expected_total")},
          {"updates_rejected", facts.metrics->Sum("distro_aggregator_updates_rejected_total")},
          {"state_hash_mismatches", Metric(facts, "state_hash_mismatches_total")},
          {"sign_agreement_ratio", MetricOrNull(facts, "sign_agreement_ratio")},
          {"log_bytes", Metric(facts, "log_bytes")},
          {"disk_free_bytes", MetricOrNull(facts, "data_dir_free_bytes")},
          {"disk_bytes", MetricOrNull(facts, "data_dir_size_bytes")}};
}

json StatesPart(const RunStatus& status) {
  json states = json::object();
  for (const v1::MemberState state : kMemberStates) {
    states[std::string(MemberStateName(state))] =
        std::ranges::count(status.workers, state, &Worker::state);
  }
  return states;
}

json WarningsPart(const StatusFacts& facts) {
  const uint64_t min_workers = facts.run == nullptr ? 0 : facts.run->config.min_workers();
  json warnings = json::array();
  for (const Warning& warning : RunWarnings({.status = &facts.status,
                                .history = &facts.history,
                                .metrics = facts.metrics,
                                .min_workers = min_workers,
                                .now = facts.now})) {
    warnings.push_back(
        {{"name", warning.name}, {"critical", warning.critical}, {"what", warning.what}});
  }
  return warnings;
}

json ChecksPart(const ReadyReport& ready) {
  json checks = json::array();
  for (const ReadyReport::Check& check : ready.checks)
    checks.push_back({{"name", check.name}, {"ok", check.ok}, {"detail", check.detail}});
  return {{"ready", ready.ready}, {"checks", std::move(checks)}};
}

}  // namespace

std::string StatusJson(const StatusFacts& facts) {
  const json report = {{"schema", 1},
                       {"time", absl::ToDoubleSeconds(facts.now - absl::UnixEpoch())},
                       {"run", RunPart(facts)},
                       {"round", RoundPart(facts)},
                       {"loss", LossPart(facts.history)},
                       {"bytes", BytesPart(facts)},
                       {"totals", TotalsPart(facts)},
                       {"states", StatesPart(facts.status)},
                       {"warnings", WarningsPart(facts)},
                       {"readiness", ChecksPart(facts.ready)},
                       {"workers", WorkerRows(facts)}};
  return ShownLines(report.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace distro::server
