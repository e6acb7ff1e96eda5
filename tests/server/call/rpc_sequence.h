// Drives a run, without gRPC, by bytes: every few bytes are one call (Join, Heartbeat, an upload's
// header or frame, Subscribe, ...), a step of the rounds, a change of the time, or a restart, in
// any order. For the fuzz target, and for the test that replays its seeds. Aborts if an invariant
// is violated:
//
//   - every status is one of those of docs/protocol.md, an upload's with its reason
//   - payloads that are arriving are counted, and given back
//   - what subscribers get is what a follower accepts; all get the same chain
//   - the log opens again and continues at the same round
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace distro::testing {

// Uses and empties `folder`. Returns the number of committed rounds.
uint64_t RunRpcSequence(const std::string& folder, const uint8_t* bytes, size_t size);

}  // namespace distro::testing
