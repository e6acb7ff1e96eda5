#include "gtest/gtest.h"
#include "tools/distroctl/report.h"

namespace distro::tools {
namespace {

TEST(TableTest, ColumnsAreAsWideAsTheirWidestCell) {
  Table table({"NAME", ">ROUND", "REASON"});
  table.Add({"w", "12345678", "late"});
  table.Add({"worker-12", "1", ""});
  EXPECT_EQ(table.Text(),
            "NAME          ROUND  REASON\n"
            "w          12345678  late\n"
            "worker-12         1");
}

TEST(TableTest, EscapesWhatATerminalWouldObey) {
  Table table({"REASON"});
  table.Add({"\033[2Jgone\nline"});
  EXPECT_EQ(table.Text(), "REASON\n\\x1b[2Jgone\\nline");
}

TEST(WordsTest, BytesHaveThreeDigitsAndAUnit) {
  EXPECT_EQ(Bytes(0), "0 B");
  EXPECT_EQ(Bytes(999), "999 B");
  EXPECT_EQ(Bytes(1770000), "1.77 MB");
  EXPECT_EQ(Bytes(86.8e6), "86.8 MB");
  EXPECT_EQ(Bytes(999.6e6), "1.00 GB");
}

}  // namespace
}  // namespace distro::tools
