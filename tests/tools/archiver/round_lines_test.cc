#include "tools/archiver/round_lines.h"

#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/json.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/round_builder.h"
#include "tests/testing/scratch_folder.h"

namespace distro::tools {
namespace {

TEST(RoundLinesTest, SayWhatTheHeaderAndTheReplaySay) {
  const Layout layout = testing::SmallLayout();
  const testing::ScratchFolder folder;
  testing::FakeClock clock;
  Log log(LogLevel::kError);
  const std::string path = folder.File("metrics.jsonl");
  auto lines = RoundLines::Open(path, &log, &clock);
  ASSERT_TRUE(lines.ok()) << lines.status();
  RoundReading reading{.run_id = "demo-1", .rounds = 9, .lag_rounds = 2, .state_hash = 0xab};
  for (const uint64_t round : {3, 4}) {
    reading.seconds[static_cast<int>(ArchiverPhase::kApply)] += 0.5;
    (*lines)->Add(testing::BuildRound(layout, RoundId(round), 7, EpochId(5)).header, reading);
  }
  const std::string text = *ReadFile(path);
  const std::vector<std::string> written = absl::StrSplit(text, '\n', absl::SkipEmpty());
  ASSERT_EQ(written.size(), 2u);
  const nlohmann::json line = *ParseJson(written[1]);
  EXPECT_EQ(line["run"], "demo-1");
  EXPECT_EQ(line["round"], 4);
  EXPECT_EQ(line["rounds"], 9);
  EXPECT_EQ(line["epoch"], 5);
  EXPECT_EQ(line["members"], 2);
  EXPECT_EQ(line["included"], 2);
  EXPECT_GT(line["received_bytes"], 0);
  EXPECT_EQ(line["lag_rounds"], 2);
  EXPECT_EQ(line["state_hash"], "00000000000000ab");
  EXPECT_EQ(line["seconds"]["apply"], 0.5) << "of this round, not since the beginning";
  EXPECT_EQ(line["seconds"].size(), static_cast<size_t>(kArchiverPhases));
}

}  // namespace
}  // namespace distro::tools
