#include "common/base/json.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using ::testing::HasSubstr;

void ExpectRefused(const std::string& text, const std::string& message) {
  const absl::Status status = ParseJson(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST(JsonTest, ReadsWhatItWrites) {
  const nlohmann::json value = {{"a", {1, -2, 3.5, true, nullptr}}, {"b", {{"c", "\xC3\xA4\n"}}}};
  const auto again = ParseJson(WriteJson(value));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, value);
  EXPECT_EQ(WriteJson(*again), WriteJson(value));
}

TEST(JsonTest, RefusesRepeatedKeysInTheSameObjectOnly) {
  ExpectRefused(R"({"a": 1, "a": 1})", "the key a is repeated");
  ExpectRefused(R"([{"x": {"b": 1, "c": 2, "b": 3}}])", "the key b is repeated");
  EXPECT_TRUE(ParseJson(R"({"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]})").ok());
}

TEST(JsonTest, RefusesDeepNestingWithoutReadingOn) {
  EXPECT_TRUE(ParseJson(std::string(64, '[') + std::string(64, ']')).ok());
  ExpectRefused(std::string(65, '[') + std::string(65, ']'), "deeper than 64");
  ExpectRefused(std::string(1 << 20, '['), "deeper than 64");
}

TEST(JsonTest, RefusesWhatIsNotJson) {
  for (const char* text :
       {"{", "{}}", "nul", "\"\xff\"", "[1e999]", "// x\n1", "{'a': 1}", "[1,]"}) {
    ExpectRefused(text, "not valid JSON");
  }
  ExpectRefused(std::string("1\0", 2), "byte 1 is zero");
}

TEST(JsonTest, SaysWhatLiesInThePlaceOfJson) {
  ExpectRefused("", "is empty");
  ExpectRefused("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer");
  ExpectRefused("<!DOCTYPE html>\n<html>", "web page (HTML)");
  ExpectRefused(std::string(100, '\0'), "begins with zeros");
}

TEST(JsonTest, MessagesStayShort) {
  for (const std::string& text :
       {"\"" + std::string(100000, 'x'), "{\"" + std::string(100000, 'x') + "\n"}) {
    EXPECT_LT(ParseJson(text).status().message().size(), 1000u);
  }
}

TEST(JsonTest, WritesStringsThatAreNotUtf8AsReplacements) {
  EXPECT_EQ(WriteJson("a\xff"), "\"a\xEF\xBF\xBD\"\n");
}

}  // namespace
}  // namespace distro
