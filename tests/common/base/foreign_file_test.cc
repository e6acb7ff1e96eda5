#include "common/base/foreign_file.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ForeignFileTest, SaysWhatTheBytesAreAndWhatToDo) {
  const std::string tar = absl::StrCat(std::string(257, 'x'), "ustar", std::string(300, 'x'));
  const std::pair<std::string, const char*> cases[] = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "git lfs pull"},
      {"<!DOCTYPE html>\n<html><head><title>401</title></head></html>\n", "web page (HTML)"},
      {"\n <HTML>", "web page (HTML)"},
      {"<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code></Error>", "web page"},
      {"{\"error\": \"Invalid username or password.\"}", "web server's answer (\"{\\\"error"},
      {"{ \"error\":\"x\"}", "web server's answer"},
      {"Entry not found", "web server's answer (\"Entry not found\")"},
      {"Access to model a/b is restricted.", "download it again"},
      {std::string("PK\x03\x04\0\0archive/data.pkl", 22), "PyTorch pickle"},
      {std::string("PK\x03\x04\0\0a.txt", 11), "zip archive"},
      {"\x80\x02\x8a\nl\xfc\x9c", "PyTorch pickle"},
      {"\x1f\x8b\x08", "gunzip"},
      {"GGUF\x03", "GGUF"},
      {std::string("\xff\xfe{\0", 4), "UTF-16"},
      {tar, "tar archive"},
      {std::string(64, '\0'), "begins with zeros"},
      {std::string("\x10\0\0\0\0\0\0\0{\"a\":", 13), "safetensors"},
      {"", "is empty"}};
  for (const auto& [bytes, what] : cases) EXPECT_THAT(ForeignFormat(bytes), HasSubstr(what));
}

TEST(ForeignFileTest, LeavesAloneWhatItDoesNotKnow) {
  for (const char* bytes : {"{\"vocab_size\": 2}", "{\"errors_allowed\": 1", "{", "x",
                            "{{ bos_token }}{% for m in messages %}", "\n\x05<unk>"}) {
    EXPECT_EQ(ForeignFormat(bytes), "") << bytes;
  }
  EXPECT_EQ(ForeignFormat(absl::StrCat("not found", std::string(5000, ' '))), "") << "a text";
}

TEST(ForeignFileTest, TellsAPointerFromText) {
  EXPECT_TRUE(IsLfsPointer("version https://git-lfs.github.com/spec/v1\n"));
  EXPECT_FALSE(IsLfsPointer("version https://example.org\n"));
  EXPECT_FALSE(IsLfsPointer("<html>"));
}

TEST(ForeignFileTest, ReplacesTheMessageOfARefusalOnly) {
  const absl::Status refused = absl::InvalidArgumentError("byte 7");
  EXPECT_EQ(ExplainForeign(refused, "{").message(), "byte 7");
  EXPECT_THAT(std::string(ExplainForeign(refused, "GGUF").message()), HasSubstr("GGUF"));
  EXPECT_EQ(ExplainForeign(absl::NotFoundError("gone"), "GGUF").message(), "gone");
  EXPECT_EQ(ExplainForeign(absl::OkStatus(), "GGUF"), absl::OkStatus());
}

TEST(ForeignFileTest, ShowsAnswerEscapedAndShort) {
  const std::string what = ForeignFormat(absl::StrCat("401 \x1b[2J", std::string(1000, 'x')));
  EXPECT_THAT(what, AllOf(HasSubstr("\\x1b[2J"), Not(HasSubstr("\x1b"))));
  EXPECT_LT(what.size(), 250u);
}

}  // namespace
}  // namespace distro
