#include "bench/aggregator_load/round_times.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/checksum.h"
#include "common/base/clock.h"

namespace distro::bench {
namespace {

absl::Duration Now() { return Clock::Real()->MonotonicNow(); }

double Seconds(absl::Duration time) { return absl::ToDoubleSeconds(time); }

}  // namespace

RoundTimes::RoundTimes(uint64_t rounds, uint32_t segments) : rounds_(rounds) {
  for (Round& round : rounds_) round.segments.resize(segments);
}

void RoundTimes::Opened(RoundId round) {
  absl::MutexLock lock(&mu_);
  absl::Duration& opened = rounds_[round.value()].opened;
  if (opened == absl::ZeroDuration()) opened = Now();
}

void RoundTimes::Sent(RoundId round, SegmentId segment) {
  absl::MutexLock lock(&mu_);
  rounds_[round.value()].segments[segment.value()].sent = Now();
}

void RoundTimes::Acknowledged(RoundId round, SegmentId segment) {
  absl::MutexLock lock(&mu_);
  rounds_[round.value()].segments[segment.value()].acknowledged = Now();
}

void RoundTimes::Received(RoundId round, SegmentId segment) {
  absl::MutexLock lock(&mu_);
  Segment& times = rounds_[round.value()].segments[segment.value()];
  times.last = Now();
  if (times.first == absl::ZeroDuration()) times.first = times.last;
}

absl::Status RoundTimes::Committed(RoundId round, uint64_t hash, uint64_t result_bytes) {
  absl::MutexLock lock(&mu_);
  Round& times = rounds_[round.value()];
  times.committed = Now();
  times.result_bytes = result_bytes;
  if (times.hash == 0) times.hash = hash;
  if (times.hash == hash) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("round ", round.value(), ": chain hash ", ToHex(hash),
                                          ", another worker's is ", ToHex(times.hash)));
}

std::string RoundTimes::Json() const {
  absl::MutexLock lock(&mu_);
  std::string json;
  for (size_t t = 0; t < rounds_.size(); ++t) {
    const Round& round = rounds_[t];
    absl::StrAppendFormat(
        &json,
        "{\"round\": %d, \"opened\": %.6f, \"committed\": %.6f, \"hash\": \"%s\", "
        "\"result_bytes\": %d, \"segments\": [",
        t, Seconds(round.opened), Seconds(round.committed), ToHex(round.hash), round.result_bytes);
    const char* separator = "";
    for (const Segment& segment : round.segments) {
      absl::StrAppendFormat(&json, "%s[%.6f, %.6f, %.6f, %.6f]", separator, Seconds(segment.sent),
                            Seconds(segment.acknowledged), Seconds(segment.first),
                            Seconds(segment.last));
      separator = ", ";
    }
    json += "]}\n";
  }
  return json;
}

}  // namespace distro::bench
