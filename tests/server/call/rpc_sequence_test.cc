// The sequences of calls of tests/fuzz/rpc_fuzz.cc: a run without faults, and the same with changed
// calls.
#include "tests/server/call/rpc_sequence.h"

#include <string>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro::testing {
namespace {

// One worker joins, follows and sends all three segments of six rounds
// (tests/fuzz/corpus/rpc_fuzz/six_rounds).
std::string SixRounds() {
  std::string calls = {0, 0, 0, 0, 1, 0, 4, 15, 10, 0, '\x80'};
  for (int round = 0; round < 6; ++round) {
    calls += {15, 3, 0, 0, 0};
    for (char segment = 0; segment < 3; ++segment) calls += {5, 0, segment, 0};
    calls += {15, 11, 2, 31, 1, 0, 4};
  }
  return calls;
}

uint64_t RunCalls(const ScratchFolder& folder, const std::string& calls) {
  return RunRpcSequence(folder.File("run"), reinterpret_cast<const uint8_t*>(calls.data()),
                        calls.size());
}

TEST(RpcSequenceTest, CallsInTheirOrderCommitEveryRound) {
  const ScratchFolder folder;
  EXPECT_EQ(RunCalls(folder, SixRounds()), 6u);
}

TEST(RpcSequenceTest, OtherOrdersKeepThePromisesToo) {
  const ScratchFolder folder;
  uint64_t rounds = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::string calls = SixRounds();
    for (uint64_t change = 0; change <= seed % 8; ++change) {
      const uint64_t word = SplitMix64(seed, change);
      const size_t at = word % calls.size();
      if (word >> 60 < 8) {
        calls[at] = static_cast<char>(word >> 32);
      } else {
        calls.insert(at, SixRounds().substr(word >> 40 & 63, word >> 50 & 15));
      }
    }
    rounds += RunCalls(folder, calls);
  }
  EXPECT_GT(rounds, 0u);
  EXPECT_LT(rounds, 200u * 6);
}

TEST(RpcSequenceTest, SoDoCallsAtRandom) {
  const ScratchFolder folder;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::string calls;
    for (uint64_t i = 0; i < 300; ++i)
      calls.push_back(static_cast<char>(SplitMix64(seed, i) >> 20));
    RunCalls(folder, calls);
  }
}

}  // namespace
}  // namespace distro::testing
