#include "bench/convergence/curve.h"

#include <cstdio>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/file.h"

namespace distro::worker {

Curve::Curve(uint64_t rounds) : rounds_(rounds), start_(absl::Now()), shown_(start_) {}

void Curve::Add(const CurvePoint& point) {
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start_);
  points_.push_back({point, seconds});
  absl::PrintF("round %6d  tokens %10d  held-out %.4f  sent %9.3f MB  received %9.3f MB  %.1f s\n",
               point.round, point.tokens, point.held_out_loss,
               static_cast<double>(point.sent_bytes) / 1e6,
               static_cast<double>(point.received_bytes) / 1e6, seconds);
  std::fflush(stdout);
}

void Curve::Progress(uint64_t round) {
  const absl::Time now = absl::Now();
  if (round == 0 || now - shown_ < absl::Seconds(10)) return;
  shown_ = now;
  const absl::Duration left = (now - start_) / round * (rounds_ - round);
  absl::FPrintF(stderr, "round %d of %d, %s left\n", round, rounds_,
                absl::FormatDuration(absl::Trunc(left, absl::Seconds(1))));
}

absl::Status Curve::WriteCsv(const std::string& path) const {
  std::string text = "round,tokens,held_out_loss,sent_bytes,received_bytes,seconds\n";
  for (const auto& [point, seconds] : points_) {
    absl::StrAppendFormat(&text, "%d,%d,%.6f,%d,%d,%.1f\n", point.round, point.tokens,
                          point.held_out_loss, point.sent_bytes, point.received_bytes, seconds);
  }
  return WriteFileAtomically(path, text);
}

}  // namespace distro::worker
