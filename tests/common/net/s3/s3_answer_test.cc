#include "common/net/s3/s3_answer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

constexpr char kPage[] =
    "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
    "<Name>runs</Name><Prefix>p/a/</Prefix><KeyCount>2</KeyCount><IsTruncated>true</IsTruncated>"
    "<Contents><Key>p/a/1</Key><LastModified>2026</LastModified><Size>3</Size></Contents>"
    "<Contents><Key>p/a/2</Key><Size>18446744073709551615</Size></Contents></ListBucketResult>";

TEST(ElementOfTest, IsTheTextOfTheFirst) {
  EXPECT_EQ(ElementOf("<a><Code>x y</Code><Code>z</Code></a>", "Code"), "x y");
  EXPECT_EQ(ElementOf("<Code>x", "Code"), "x");
  EXPECT_EQ(ElementOf("<Codes>x</Codes>", "Code"), "");
  EXPECT_EQ(ElementOf("", "Code"), "");
}

TEST(ParsePageTest, ReadsKeysAndSizes) {
  const auto page = ParsePage(kPage, "p/a/", "p/a/");
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->objects.size(), 2);
  EXPECT_EQ(page->objects[0].key, "p/a/1");
  EXPECT_EQ(page->objects[0].bytes, 3);
  EXPECT_EQ(page->objects[1].bytes, UINT64_MAX);
  EXPECT_TRUE(page->more);
}

TEST(ParsePageTest, EndsWithAnEmptyPage) {
  const auto page = ParsePage("<R><IsTruncated>false</IsTruncated></R>", "p/", "p/");
  ASSERT_TRUE(page.ok());
  EXPECT_FALSE(page->more);
  EXPECT_FALSE(ParsePage("<R><IsTruncated>true</IsTruncated></R>", "p/", "p/").ok());
}

TEST(ParsePageTest, RefusesWhatIsNoList) {
  const std::string one = "<Contents><Key>p/a/1</Key><Size>3</Size></Contents>";
  for (const std::string& xml :
       {one + one, std::string("<Contents><Key>q/a/1</Key><Size>3</Size></Contents>"),
        std::string("<Contents><Key>p/a/1</Key><Size>-3</Size></Contents>"),
        std::string("<Contents><Key>p/a/1</Key></Contents><Size>3</Size>")}) {
    EXPECT_EQ(ParsePage(xml, "p/", "p/").status().code(), absl::StatusCode::kUnavailable) << xml;
  }
  EXPECT_FALSE(ParsePage(one, "p/", "p/a/1").ok()) << "seen before";
}

TEST(ParsePageTest, TakesNothingElseOfADamagedOne) {
  const std::string whole(kPage);
  for (size_t i = 0; i < whole.size(); ++i) {
    const auto cut = ParsePage(whole.substr(0, i), "p/a/", "p/a/");
    EXPECT_TRUE(!cut.ok() || cut->objects.size() <= 2) << i;
    for (const int bit : {1, 4, 32}) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ bit);
      const auto page = ParsePage(flipped, "p/a/", "p/a/");
      if (!page.ok()) continue;
      for (const S3Listed& object : page->objects)
        EXPECT_TRUE(object.key.starts_with("p/a/")) << object.key;
    }
  }
}

}  // namespace
}  // namespace distro
