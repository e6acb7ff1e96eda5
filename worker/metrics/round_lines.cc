#include "worker/metrics/round_lines.h"

#include <cmath>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "common/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace distro::worker {
namespace {

using nlohmann::ordered_json;

// JSON has no number for what is not known or not finite.
ordered_json NumberOrNull(std::optional<double> value) {
  return value.has_value() && std::isfinite(*value) ? ordered_json(*value) : ordered_json(nullptr);
}

double UnixSeconds(absl::Time time) { return static_cast<double>(absl::ToUnixMillis(time)) / 1e3; }

}  // namespace

std::string RoundLine(const TrainSummary& now, const TrainSummary& before, absl::Time time) {
  // A round for which this worker took no step has no loss, and not the one of an earlier round.
  const bool stepped = now.tokens != before.tokens;
  const auto of_step = [stepped](std::optional<double> value) {
    return NumberOrNull(stepped ? value : std::nullopt);
  };
  ordered_json line = {
      {"time", UnixSeconds(time)},
      {"run", now.run_id},
      {"round", now.next_round - 1},
      {"rounds", now.rounds},
      {"loss", of_step(now.training_loss)},
      {"learning_rate", of_step(now.learning_rate)},
      {"gradient_norm", of_step(now.gradient_norm)},
      {"tokens", now.tokens - before.tokens},
      {"sent_bytes", now.transfer.sent_payload_bytes - before.transfer.sent_payload_bytes},
      {"received_bytes",
       now.transfer.received_payload_bytes - before.transfer.received_payload_bytes},
      {"updates_excluded", now.updates_excluded - before.updates_excluded}};
  if (now.last_evaluation_loss != before.last_evaluation_loss)
    line["held_out_loss"] = NumberOrNull(now.last_evaluation_loss);
  if (now.last_own_evaluation_loss != before.last_own_evaluation_loss)
    line["own_held_out_loss"] = NumberOrNull(now.last_own_evaluation_loss);
  for (int i = 0; i < kPhases; ++i) {
    line["seconds"][std::string(PhaseName(static_cast<Phase>(i)))] =
        absl::ToDoubleSeconds(now.phases[i] - before.phases[i]);
  }
  return line.dump(-1, ' ', true);
}

absl::StatusOr<std::unique_ptr<RoundLines>> RoundLines::Open(const std::string& path, Log* log,
                                                             const Clock* clock) {
  DISTRO_ASSIGN_OR_RETURN(std::unique_ptr<LineFile> file, LineFile::Open(path, kMaxRoundLineBytes));
  return absl::WrapUnique(new RoundLines(std::move(file), log, clock));
}

void RoundLines::Add(const TrainSummary& reading) {
  if (reading.rounds_applied == before_.rounds_applied) return;
  const absl::Status status = file_->Append(RoundLine(reading, before_, clock_->WallNow()));
  if (status.ok()) {
    failures_.Succeeded("rounds are written to metrics_file again");
  } else {
    failures_.Failed(status.message());
  }
  before_ = reading;
}

}  // namespace distro::worker
