#include "common/net/http/http_range.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

// "begin-end" of what is sent of 1000 bytes; "all": the header is not followed.
std::string Sent(absl::string_view header) {
  const std::optional<ByteRange> range = ParseRange(header, 1000);
  return range ? absl::StrCat(range->begin, "-", range->end) : "all";
}

TEST(HttpRangeTest, TakesOneRange) {
  EXPECT_EQ(Sent("bytes=100-199"), "100-200");
  EXPECT_EQ(Sent("bytes=0-0"), "0-1");
  EXPECT_EQ(Sent("bytes=100-"), "100-1000");
  EXPECT_EQ(Sent("bytes=-100"), "900-1000");
}

TEST(HttpRangeTest, EndsWithTheContent) {
  EXPECT_EQ(Sent("bytes=900-18446744073709551615"), "900-1000");
  EXPECT_EQ(Sent("bytes=999-1000"), "999-1000");
  EXPECT_EQ(Sent("bytes=-5000"), "0-1000");
}

TEST(HttpRangeTest, IsEmptyBehindTheContent) {
  EXPECT_EQ(Sent("bytes=1000-"), "1000-1000");
  EXPECT_EQ(Sent("bytes=5000-6000"), "1000-1000");
  EXPECT_EQ(Sent("bytes=-0"), "1000-1000");
}

TEST(HttpRangeTest, IgnoresWhatItDoesNotUnderstand) {
  for (const char* header :
       {"", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=1-2,4-5", "bytes=2-1", "bytes=+1-2",
        "bytes= 1-2", "bytes=1-2 ", "bytes=1", "items=1-2", "bytes=18446744073709551616-",
        "bytes=1-99999999999999999999", "bytes=--1"}) {
    EXPECT_EQ(Sent(header), "all") << header;
  }
}

TEST(HttpRangeTest, NamesWhatIsSent) {
  EXPECT_EQ(ContentRange({100, 200}, 1000), "bytes 100-199/1000");
  EXPECT_EQ(ContentRange({1000, 1000}, 1000), "bytes */1000");
}

TEST(HttpRangeTest, ReadsWhereAResponseBegins) {
  EXPECT_EQ(BeginOfContentRange("bytes 100-199/1000"), 100);
  EXPECT_EQ(BeginOfContentRange("bytes 0-199/*"), 0);
  for (const char* value : {"", "bytes", "bytes */1000", "bytes=1-2/3", "bytes -1-2/3", "1-2/3"})
    EXPECT_EQ(BeginOfContentRange(value), std::nullopt) << value;
}

}  // namespace
}  // namespace distro
