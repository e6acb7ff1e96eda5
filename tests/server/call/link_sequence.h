// Measurements of links (MeasureLink) as a part of a sequence of calls (rpc_sequence.h), at most
// three at a time. It checks:
//
//   - every status is one of those of docs/protocol.md
//   - what is answered is as large as was asked for, counts what came, and has the run's needs once
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "server/call/link_call.h"
#include "server/limits/stream_limiter.h"
#include "tests/server/call/sequence_input.h"

namespace distro::testing {

class LinkSequence {
 public:
  // Both are borrowed.
  LinkSequence(server::StreamLimiter* limiter, const Clock* clock)
      : limiter_(limiter), clock_(clock) {}

  // Begins a measurement, sends some messages of one, or ends one; the bytes decide.
  void Call(Input* input, const v1::LinkNeeds& needs);
  // Ends all of them.
  void Clear() { links_.clear(); }

 private:
  struct Link {
    std::unique_ptr<server::LimitedStream> stream;
    std::unique_ptr<server::LinkCall> call;
    uint64_t received = 0;
    int answers = 0;
  };
  Link Begin(Input* input, const v1::LinkNeeds& needs) const;
  // False: the call ended.
  static bool Message(const v1::MeasureLinkRequest& request, Link* link);

  server::StreamLimiter* const limiter_;
  const Clock* const clock_;
  const std::string noise_ = server::LinkNoise();
  std::map<uint32_t, Link> links_;
};

}  // namespace distro::testing
