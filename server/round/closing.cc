#include "server/round/closing.h"

#include <algorithm>
#include <utility>

#include "common/base/parallel.h"
#include "common/base/status_macros.h"

namespace distro::server {
namespace {

constexpr int kMaxCombiningThreads = 8;  // each holds a segment's sums and result

}  // namespace

std::vector<std::string> CloseSegments(absl::Span<const SegmentId> segments, Round* round,
                                       std::vector<ClosedSegment>* closed) {
  std::vector<std::string> missing;
  for (const SegmentId segment : segments) {
    for (std::string& name : round->Missing(segment)) missing.push_back(std::move(name));
    const absl::Duration last_in = round->last_in(segment);
    std::vector<Contribution> audited;
    // Before Close, which takes the payloads out.
    if (segment == round->audited()) audited = round->Audited();
    closed->push_back({segment, round->Close(segment), last_in, std::move(audited)});
  }
  return missing;
}

absl::Status CombineClosed(
    const RunIdentity& run, RoundId round, absl::Span<const ClosedSegment> closed,
    const Clock& clock,
    absl::FunctionRef<absl::Status(const ClosedSegment&, const SegmentResult&)> done) {
  const int threads = std::min(Cores(), kMaxCombiningThreads);
  while (!closed.empty()) {
    const auto batch = closed.first(std::min<size_t>(threads, closed.size()));
    closed.remove_prefix(batch.size());
    std::vector<absl::StatusOr<SegmentResult>> results(batch.size());
    const int threads_each = threads / static_cast<int>(batch.size());
    RunParallel(threads, static_cast<int64_t>(batch.size()), [&](int /*thread*/, int64_t i) {
      results[i] = run.method->Combine({.round = round, .segment = batch[i].segment},
                                       batch[i].payloads, threads_each, clock);
    });
    for (size_t i = 0; i < batch.size(); ++i) {
      DISTRO_RETURN_IF_ERROR(results[i].status());
      DISTRO_RETURN_IF_ERROR(done(batch[i], *results[i]));
    }
  }
  return absl::OkStatus();
}

}  // namespace distro::server
