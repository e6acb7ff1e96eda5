#include <sstream>

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
  table.Add({"\u202eetal"});
  table.Add({"\u009b2J"});
  EXPECT_EQ(table.Text(), "REASON\n\\x1b[2Jgone\\nline\n\\u202eetal\n\\u009b2J");
}

// The text of others reaches a terminal through Show, as text and as JSON.
TEST(ConsoleTest, ShowsTextOfOthersForWhatItIs) {
  Report report{.text = "a\n\u202eb\x1b[2J", .json = {{"reason", "\u202eb\u009b"}}};
  std::ostringstream out;
  Console console{.progress = {}, .out = &out};
  EXPECT_TRUE(console.Show(report).ok());
  EXPECT_EQ(out.str(), "a\n\\u202eb\\x1b[2J\n");
  out.str("");
  console.output = "json";
  EXPECT_TRUE(console.Show(report).ok());
  EXPECT_EQ(out.str(), "{\n  \"reason\": \"\\u202eb\\u009b\"\n}\n");
  EXPECT_EQ(nlohmann::json::parse(out.str()), report.json);
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
