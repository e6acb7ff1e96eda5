// An exchange that records the events and updates of a worker, and can change the events.
#pragma once

#include <bit>
#include <functional>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "tests/worker/train/forwarding_exchange.h"

namespace distro::worker {

// Changes the event before the worker receives it, and before it is recorded.
class RecordingExchange : public ForwardingExchange {
 public:
  using ForwardingExchange::ForwardingExchange;
  absl::StatusOr<RoundEvent> Next() override {
    absl::StatusOr<RoundEvent> event = inner_.Next();
    if (!event.ok()) return event;
    if (auto* opened = std::get_if<OpenedRound>(&*event)) {
      if (change_open) change_open(opened->round, &opened->open);
      rounds.push_back({.opened = *opened});
    }
    if (auto* committed = std::get_if<CommittedRound>(&*event)) {
      v1::RoundHeader header = *committed->header;
      if (change_record) change_record(&header);
      committed->header = std::make_shared<const v1::RoundHeader>(std::move(header));
      rounds.back().committed = *committed;
    }
    return event;
  }
  void Upload(RoundUpdate update) override {
    rounds.back().uploads.push_back(update);
    inner_.Upload(std::move(update));
  }

  struct Seen {
    OpenedRound opened;
    CommittedRound committed = {};
    std::vector<RoundUpdate> uploads = {};
  };
  std::vector<Seen> rounds;
  std::function<void(RoundId round, v1::RoundOpen* open)> change_open;
  std::function<void(v1::RoundHeader* header)> change_record;
};

// Of a round of deltas.
inline void SetRates(const std::vector<float>& rates, v1::RoundOpen* open) {
  v1::DeltaParameters& deltas = *open->mutable_step()->mutable_deltas();
  deltas.clear_inner_rate_bits();
  for (const float rate : rates) deltas.add_inner_rate_bits(std::bit_cast<uint32_t>(rate));
}

}  // namespace distro::worker
