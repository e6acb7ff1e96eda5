// RoundManager: what the run asks of a worker's link.
#include <algorithm>

#include "common/codec/payload.h"
#include "common/rpc/proto_time.h"
#include "server/round/round_manager.h"

namespace distro::server {
namespace {

// Records have one size (k <= 8); the other codec's is a bound.
uint64_t UpdateBytes(const Layout& layout, int k) {
  uint64_t bytes = 0;
  for (SegmentId s(0); s.value() < layout.segments(); s = s.Next()) {
    const auto blocks = static_cast<uint64_t>(layout.SegmentBlocks(s));
    bytes += k <= 8 ? RecordUpdatePayloadBytes(blocks, k) : MaxUpdatePayloadBytes(blocks, k);
  }
  return bytes;
}

}  // namespace

v1::LinkNeeds RoundManager::LinkNeeds() const {
  v1::LinkNeeds needs;
  needs.set_update_bytes(UpdateBytes(layout(), static_cast<int>(run_->config.kept_per_block())));
  needs.set_overlap(run_->config.overlap());
  absl::MutexLock lock(&mu_);
  needs.set_workers(static_cast<uint32_t>(std::count_if(
      membership_.workers().begin(), membership_.workers().end(),
      [](const auto& named) { return named.second.state == v1::MEMBER_STATE_ACTIVE; })));
  if (log_rate_.MeanResultBytes() == 0) return needs;
  needs.set_result_bytes(log_rate_.MeanResultBytes());
  *needs.mutable_round_duration() = ToProto(log_rate_.MeanDuration());
  return needs;
}

}  // namespace distro::server
