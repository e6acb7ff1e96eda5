#include "worker/train/progress.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/output.h"

namespace distro::worker {

ProgressReading ReadingOf(const TrainSummary& summary) {
  return {.round = summary.next_round,
          .rounds = summary.rounds,
          .loss = summary.training_loss,
          .evaluation_loss = summary.last_evaluation_loss,
          .tokens = summary.tokens,
          .sent_bytes = summary.transfer.sent_payload_bytes,
          .received_bytes = summary.transfer.received_payload_bytes,
          .wait = summary.phases[static_cast<int>(Phase::kWait)],
          .uncounted = summary.uncounted};
}

Progress::Progress(std::FILE* out, bool live, const Clock* clock)
    : out_(out), live_(live), clock_(clock), text_(clock) {}

void Progress::Update(const ProgressReading& reading) {
  const absl::Duration now = clock_->MonotonicNow();
  const absl::Duration interval = live_ ? absl::Milliseconds(200) : absl::Seconds(10);
  const bool last = reading.round == reading.rounds;
  if (last_shown_.has_value() && now - *last_shown_ < interval && !last) return;
  last_shown_ = now;
  const std::string line = text_.Line(reading);
  if (!HasRoom(fileno(out_))) return;
  absl::FPrintF(out_, "%s%s%s", live_ ? "\r\x1b[K" : "", line, live_ ? "" : "\n");
  std::fflush(out_);
  line_open_ = live_;
}

void Progress::Finish() {
  if (line_open_ && HasRoom(fileno(out_))) absl::FPrintF(out_, "\n");
  line_open_ = false;
}

std::string ProgressText::Line(const ProgressReading& reading) {
  if (!first_round_.has_value()) first_round_ = reading.round;
  const double seconds = std::max(absl::ToDoubleSeconds(clock_->MonotonicNow() - start_), 1e-3);
  const double rounds = static_cast<double>(reading.round - *first_round_);
  const absl::Duration left =
      rounds > 0
          ? absl::Seconds(seconds / rounds * static_cast<double>(reading.rounds - reading.round))
          : absl::InfiniteDuration();
  std::string line = absl::StrFormat("round %d/%d", reading.round, reading.rounds);
  if (reading.loss.has_value()) absl::StrAppendFormat(&line, "  loss %.4f", *reading.loss);
  if (reading.evaluation_loss.has_value())
    absl::StrAppendFormat(&line, "  held-out %.4f", *reading.evaluation_loss);
  absl::StrAppendFormat(&line, "  %.0f tokens/s  up %.1f kB/s  down %.1f kB/s  network %.0f %%",
                        static_cast<double>(reading.tokens) / seconds,
                        static_cast<double>(reading.sent_bytes) / seconds / 1e3,
                        static_cast<double>(reading.received_bytes) / seconds / 1e3,
                        100 * absl::ToDoubleSeconds(reading.wait) / seconds);
  if (left < absl::InfiniteDuration()) {
    absl::StrAppendFormat(&line, "  %s left",
                          absl::FormatDuration(absl::Trunc(left, absl::Seconds(1))));
  }
  if (!reading.uncounted.empty()) absl::StrAppend(&line, "  ", reading.uncounted);
  return line;
}

}  // namespace distro::worker
