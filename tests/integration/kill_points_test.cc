// The aggregator is killed at every operation on its data folder, one after the other: in the
// middle of creating the run, of writing a record, of making it durable, of ending. Each time it is
// started again and the two workers continue by themselves. At the end parameters and momentum are
// bit for bit those of the undisturbed run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "common/base/checksum.h"
#include "tests/integration/killed_run.h"

namespace distro::testing {
namespace {

// Runs with a kill at operation 0, 1, 2, ... until one is not killed any more.
std::map<size_t, KilledRun> TrainWithEachKill() {
  absl::Mutex mu;
  std::map<size_t, KilledRun> runs;
  ForEachInLanes([&](size_t n) {
    KilledRun run = TrainWhileKilled({absl::StrCat(n)});
    const bool killed = !run.killed.empty();
    absl::MutexLock lock(&mu);
    runs[n] = std::move(run);
    return killed;
  });
  return runs;
}

TEST(KillPointsTest, LeavesRunUnchangedAtEachOperation) {
  const KilledRun undisturbed = TrainWhileKilled({});
  ASSERT_TRUE(undisturbed.killed.empty());
  ASSERT_EQ(undisturbed.state, ToHex(*undisturbed.workers[0].summary.state_hash));
  std::set<std::string> operations;  // the first word after "killed at N: "
  const std::map<size_t, KilledRun> runs = TrainWithEachKill();
  RecordProperty("points", static_cast<int>(std::ranges::count_if(
                               runs, [](const auto& run) { return !run.second.killed.empty(); })));
  for (const auto& [n, run] : runs) {
    ExpectSameRun(run, undisturbed);
    for (const std::string& killed : run.killed)
      operations.insert(std::vector<std::string>(absl::StrSplit(killed, ' ')).at(3));
  }
  EXPECT_THAT(operations, ::testing::IsSupersetOf({"create_folder", "create", "write", "fsync",
                                                   "link", "rename", "unlink", "fsync_folder"}));
}

}  // namespace
}  // namespace distro::testing
