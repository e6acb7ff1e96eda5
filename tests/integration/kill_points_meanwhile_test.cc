// While two workers train, an operator sends decisions and an archiver uploads snapshots. The
// aggregator is killed at every operation on the files of these: admission.pb, an upload, a
// snapshot, snapshots.pb, a pack and the records that it replaces; and, after a kill, at those of
// the next start. All processes continue by themselves, and the run ends with the bits of the
// undisturbed one. Each file has its old or its new content, and every answered decision is stored.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/integration/killed_run.h"
#include "tests/integration/slow_archiver.h"
#include "tests/integration/steady_operator.h"

namespace distro::testing {
namespace {

constexpr uint64_t kInterval = 2;

KilledRun TrainAndDecide(const std::vector<std::string>& points) {
  return TrainWhileKilled(points, [](const ChannelOptions& channel, const std::string& data_dir) {
    std::thread operates([&] { DecideSteadily(channel, data_dir); });
    ArchiveSlowly(channel, data_dir + "_archive", kInterval);
    operates.join();
  });
}

// Operations after the start on files that the rounds themselves do not write.
std::vector<std::string> PointsOf(const KilledRun& run) {
  std::vector<std::string> points;
  bool listening = false;
  for (absl::string_view line : absl::StrSplit(run.log, '\n')) {
    listening = listening || absl::StartsWith(line, "listening ");
    if (!listening || !absl::ConsumePrefix(&line, "operation ")) continue;
    const std::vector<std::string> parts = absl::StrSplit(line, '/');  // kind, name, number
    const std::string& name = parts.at(1);
    const bool pruned =
        (parts[0] == "rename" || parts[0] == "unlink") && absl::EndsWith(name, ".record");
    const bool file = absl::StartsWith(name, "admission.pb") ||
                      absl::StartsWith(name, "snapshots.pb") || absl::EndsWith(name, ".part") ||
                      absl::EndsWith(name, ".safetensors");
    const bool folder = name == "data" || name == "snapshots" || name == "incoming";
    if (pruned || file || folder) points.emplace_back(line);
  }
  return points;
}

// Each kind of operation of each file is there at least so often.
void ExpectAllKinds(const std::vector<std::string>& points) {
  const std::set<std::string> all(points.begin(), points.end());
  for (const char* point :
       {"create/admission.pb.tmp/5", "write/admission.pb.tmp/5", "fsync/admission.pb.tmp/5",
        "rename/admission.pb/5", "fsync_folder/data/8", "create/snapshots.pb.tmp/3",
        "write/snapshots.pb.tmp/3", "fsync/snapshots.pb.tmp/3", "rename/snapshots.pb/3",
        "link/5.safetensors/1", "fsync_folder/snapshots/3", "unlink/1.safetensors/2",
        "rename/0000000000.record/2", "unlink/0000000002.record/1"}) {
    EXPECT_TRUE(all.contains(point)) << point;
  }
  for (const char* kind : {"create/", "write/", "fsync/", "unlink/"}) {
    const auto is_upload = [kind](const std::string& point) {
      return absl::StartsWith(point, kind) && absl::StrContains(point, ".part/");
    };
    const bool of_frames = absl::string_view(kind) == "write/";  // three a snapshot
    EXPECT_EQ(std::ranges::count_if(points, is_upload), of_frames ? 9 : 3) << kind;
  }
}

// A run for each element of `kills`: the points of its starts.
void ExpectTheSameWithEach(const std::vector<std::vector<std::string>>& kills,
                           const KilledRun& undisturbed) {
  ForEachInLanes([&](size_t i) {
    if (i >= kills.size()) return false;
    const KilledRun run = TrainAndDecide(kills[i]);
    EXPECT_EQ(run.killed.size(), kills[i].size()) << absl::StrJoin(kills[i], ", ");
    ExpectSameRun(run, undisturbed);
    return true;
  });
}

TEST(KillPointsMeanwhileTest, LeavesRunUnchangedAtEachOperation) {
  const KilledRun undisturbed = TrainAndDecide({"list"});
  const std::vector<std::string> points = PointsOf(undisturbed);
  ExpectAllKinds(points);
  RecordProperty("points", static_cast<int>(points.size()));
  std::vector<std::vector<std::string>> kills;
  for (const std::string& point : points) kills.push_back({point});
  ExpectTheSameWithEach(kills, undisturbed);
}

// The epoch's file, and what the first kill left behind.
TEST(KillPointsMeanwhileTest, LeavesRunUnchangedDuringStart) {
  ExpectTheSameWithEach({{"rename/admission.pb/1", "create/epoch.tmp/1"},
                         {"rename/admission.pb/2", "write/epoch.tmp/1"},
                         {"rename/admission.pb/3", "fsync/epoch.tmp/1"},
                         {"link/1.safetensors/1", "rename/epoch/1"},
                         {"link/3.safetensors/1", "fsync_folder/data/1"},
                         {"write/admission.pb.tmp/1", "unlink/admission.pb.tmp/1"},
                         {"fsync/snapshots.pb.tmp/1", "unlink/snapshots.pb.tmp/1"},
                         {"create/snapshots.pb.tmp/2", "unlink/3.safetensors/1"},
                         {"rename/0000000000.record/1", "rename/0000000000.record/1"},
                         {"unlink/0000000001.record/1", "unlink/0000000001.record/1"}},
                        TrainAndDecide({}));
}

}  // namespace
}  // namespace distro::testing
