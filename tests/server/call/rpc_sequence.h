// A run behind its calls, without gRPC, driven by bytes: every few bytes are one call (Join,
// Heartbeat, an upload's header or frame, Subscribe, ...), a step of the rounds, time that passes,
// or a restart, in any order. What must hold is checked as it goes, and a violation aborts: for the
// fuzz target and for the test that replays its seeds.
//
//   - every status is one of those of docs/protocol.md, an upload's with its reason
//   - payloads that are arriving are counted, and given back
//   - what subscribers get is what a follower accepts; all get the same chain
//   - the log opens again and goes on where it was
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace distro::testing {

// `folder` is used and emptied. Rounds that were committed.
uint64_t RunRpcSequence(const std::string& folder, const uint8_t* bytes, size_t size);

}  // namespace distro::testing
