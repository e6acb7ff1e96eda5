#include "worker/train/summary.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/checksum.h"
#include "nlohmann/json.hpp"

namespace distro::worker {
namespace {

double PerRound(uint64_t bytes, uint64_t rounds) {
  return static_cast<double>(bytes) / static_cast<double>(std::max<uint64_t>(rounds, 1));
}

std::string Loss(const std::optional<double>& loss) {
  return loss.has_value() ? absl::StrFormat("%.4f", *loss) : "not evaluated";
}

std::string TimeSplit(const TrainSummary& summary) {
  std::string line;
  for (int i = 0; i < kPhases; ++i) {
    const double share = absl::FDivDuration(summary.phases[i], summary.wall_time);
    if (share < 0.0005) continue;
    absl::StrAppendFormat(&line, "%s%s %.1f %%", line.empty() ? "" : ", ",
                          PhaseName(static_cast<Phase>(i)), 100 * share);
  }
  return line;
}

nlohmann::ordered_json OrNull(const std::optional<double>& value) {
  return value.has_value() ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

nlohmann::ordered_json HexOrNull(const std::optional<uint64_t>& value) {
  if (!value.has_value()) return nullptr;
  return ToHex(*value);
}

std::string Percent(const std::optional<double>& share) {
  return share.has_value() ? absl::StrFormat("%.1f %%", 100 * *share) : "-";
}

std::string DeltasText(const DeltaReadings& deltas) {
  return absl::StrFormat(
      "%d inner steps; last update: norm %s, %s of the energy, %s at the cap, %s cancelled",
      deltas.inner_steps,
      deltas.delta_norm.has_value() ? absl::StrFormat("%.3g", *deltas.delta_norm) : "-",
      Percent(deltas.energy_kept), Percent(deltas.capped), Percent(deltas.cancelled));
}

nlohmann::ordered_json DeltasJson(const std::optional<DeltaReadings>& deltas) {
  if (!deltas.has_value()) return {};
  return {{"inner_steps", deltas->inner_steps},
          {"delta_norm", OrNull(deltas->delta_norm)},
          {"energy_kept", OrNull(deltas->energy_kept)},
          {"capped", OrNull(deltas->capped)},
          {"cancelled", OrNull(deltas->cancelled)}};
}

}  // namespace

absl::string_view ExclusionName(Exclusion exclusion) {
  constexpr absl::string_view kNames[kExclusions] = {"late", "probation", "absent", "other_sender"};
  return kNames[static_cast<int>(exclusion)];
}

std::string SummaryText(const TrainSummary& summary) {
  const double up = PerRound(summary.transfer.sent_payload_bytes, summary.updates_sent);
  const double down = PerRound(summary.transfer.received_payload_bytes, summary.rounds_applied);
  const double gradient = 4.0 * static_cast<double>(summary.parameters);
  std::string text = absl::StrFormat("worker %s of run %s\n", summary.worker, summary.run_id);
  absl::StrAppendFormat(&text, "  validation loss  %s at the start, %s at the end (nats a token)\n",
                        Loss(summary.first_evaluation_loss), Loss(summary.last_evaluation_loss));
  if (summary.last_own_evaluation_loss.has_value())
    absl::StrAppendFormat(&text, "  own held-out     %s at the start, %s at the end\n",
                          Loss(summary.first_own_evaluation_loss),
                          Loss(summary.last_own_evaluation_loss));
  absl::StrAppendFormat(&text, "  rounds           %d applied, up to round %d\n",
                        summary.rounds_applied, summary.next_round);
  absl::StrAppendFormat(&text,
                        "  updates          %d sent, %d not fully included, %d steps not finite\n",
                        summary.updates_sent, summary.updates_excluded, summary.nonfinite_steps);
  if (!summary.uncounted.empty())
    absl::StrAppendFormat(&text, "  NOT COUNTED      %s\n", summary.uncounted);
  absl::StrAppendFormat(
      &text, "  tokens           %d in %s\n", summary.tokens,
      absl::FormatDuration(absl::Trunc(summary.wall_time, absl::Milliseconds(100))));
  absl::StrAppendFormat(&text, "  bytes a round    %.0f up, %.0f down\n", up, down);
  if (up > 0 && down > 0) {
    absl::StrAppendFormat(
        &text, "  reduction        %.0fx up, %.0fx down against a float32 gradient of %.0f bytes\n",
        gradient / up, gradient / down, gradient);
  }
  if (summary.deltas.has_value())
    absl::StrAppendFormat(&text, "  deltas           %s\n", DeltasText(*summary.deltas));
  absl::StrAppendFormat(&text, "  time             %s\n", TimeSplit(summary));
  absl::StrAppendFormat(&text, "  state hash       %s\n", ToHex(summary.state_hash.value_or(0)));
  if (!summary.checkpoint_dir.empty())
    absl::StrAppendFormat(&text, "  checkpoint       %s\n", summary.checkpoint_dir);
  return text;
}

std::string SummaryJson(const TrainSummary& summary) {
  nlohmann::ordered_json json = {
      {"worker", summary.worker},
      {"incarnation", ToHex(summary.incarnation)},
      {"run_id", summary.run_id},
      {"parameters", summary.parameters},
      {"next_round", summary.next_round},
      {"rounds", summary.rounds},
      {"rounds_applied", summary.rounds_applied},
      {"updates_sent", summary.updates_sent},
      {"updates_excluded", summary.updates_excluded},
      {"uncounted_in_a_row", summary.uncounted_in_a_row},
      {"nonfinite_steps", summary.nonfinite_steps},
      {"resyncs", summary.resyncs},
      {"tokens", summary.tokens},
      {"training_loss", OrNull(summary.training_loss)},
      {"learning_rate", OrNull(summary.learning_rate)},
      {"state_hash", HexOrNull(summary.state_hash)},
      {"sent_payload_bytes", summary.transfer.sent_payload_bytes},
      {"received_payload_bytes", summary.transfer.received_payload_bytes},
      {"mirror_bytes", summary.transfer.mirror_bytes},
      {"mirror_failures", summary.transfer.mirror_failures},
      {"retries", summary.transfer.TotalRetries()},
      {"reconnects", summary.transfer.reconnects},
      {"wall_seconds", absl::ToDoubleSeconds(summary.wall_time)},
      {"checkpoint_dir", summary.checkpoint_dir}};
  json["first_evaluation_loss"] = OrNull(summary.first_evaluation_loss);
  json["last_evaluation_loss"] = OrNull(summary.last_evaluation_loss);
  json["first_own_evaluation_loss"] = OrNull(summary.first_own_evaluation_loss);
  json["last_own_evaluation_loss"] = OrNull(summary.last_own_evaluation_loss);
  json["deltas"] = DeltasJson(summary.deltas);
  for (int i = 0; i < kPhases; ++i) {
    json["phase_seconds"][std::string(PhaseName(static_cast<Phase>(i)))] =
        absl::ToDoubleSeconds(summary.phases[i]);
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace distro::worker
