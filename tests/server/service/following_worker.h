// A scripted worker whose replica follows the run, so that its state hashes are right. It is the
// only worker of the run.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "kernels/replica/replica.h"
#include "tests/server/round/run_fixture.h"
#include "tests/server/service/test_client.h"

namespace distro::testing {

class FollowingWorker {
 public:
  // `worker` is joined and ACTIVE, `replica` holds the parameters before its next round; both are
  // borrowed.
  FollowingWorker(TestWorker* worker, Replica* replica)
      : worker_(worker), replica_(replica), rounds_(Subscribe()) {}

  // Trains rounds, with updates drawn from `seed`, until `round` is the next. `wrong_hash` is added
  // to the state hashes it reports.
  absl::Status AdvanceTo(uint64_t round, uint64_t seed = 0, uint64_t wrong_hash = 0) {
    while (replica_->next_round().value() < round) {
      const uint64_t t = replica_->next_round().value();
      worker_->Heartbeat(t, replica_->log_hash());
      DISTRO_RETURN_IF_ERROR(rounds_->NextOpen().status());
      v1::UploadHeader header = worker_->Header(t);
      header.set_state_hash(replica_->StateHash() + wrong_hash);
      const UploadOutcome sent = worker_->Send(header, Frames(t, seed));
      DISTRO_RETURN_IF_ERROR(sent.status);
      DISTRO_ASSIGN_OR_RETURN(const CommittedRound committed, rounds_->NextCommit());
      DISTRO_RETURN_IF_ERROR(replica_->Apply(committed));
    }
    return absl::OkStatus();
  }

 private:
  std::unique_ptr<TestSubscription> Subscribe() {
    const uint64_t next = replica_->next_round().value();
    return worker_->Subscribe(&replica_->layout(), next, next == 0 ? 0 : replica_->log_hash());
  }

  std::vector<v1::UploadFrame> Frames(uint64_t round, uint64_t seed) const {
    std::vector<v1::UploadFrame> frames;
    const std::vector<SharedBytes> payloads =
        UpdatePayloads(replica_->layout(), RoundId(round), seed + 100 * round);
    for (uint32_t s = 0; s < payloads.size(); ++s) {
      v1::UploadFrame& frame = frames.emplace_back();
      frame.set_segment(s);
      frame.set_payload_bytes(payloads[s]->size());
      frame.set_data(*payloads[s]);
    }
    return frames;
  }

  TestWorker* const worker_;
  Replica* const replica_;
  std::unique_ptr<TestSubscription> rounds_;
};

}  // namespace distro::testing
