// The sequences of calls of tests/fuzz/rpc_fuzz.cc, drawn from fixed seeds: rounds are committed in some of them.
#include "tests/testing/rpc_sequence.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro::testing {
namespace {

TEST(RpcSequenceTest, AnyOrderOfCallsKeepsItsPromises) {
  const ScratchFolder folder;
  uint64_t rounds = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::string bytes;
    for (uint64_t i = 0; i < 400; ++i)
      bytes.push_back(static_cast<char>(SplitMix64(seed, i) >> 20));
    rounds += RunRpcSequence(folder.File("rounds"), reinterpret_cast<const uint8_t*>(bytes.data()),
                             bytes.size());
  }
  EXPECT_GT(rounds, 0u);
}

}  // namespace
}  // namespace distro::testing
