#include "common/client/probe/greeting.h"

#include <gtest/gtest.h>

#include <string>

namespace distro {
namespace {

using std::string_literals::operator""s;

TEST(GreetingTest, TellsWhatAPeerIs) {
  EXPECT_EQ(GreetingOf(""), Greeting::kNothing);
  EXPECT_EQ(GreetingOf("\x16\x03"), Greeting::kNothing);
  EXPECT_EQ(GreetingOf("\x16\x03\x03\x00\x7a"s), Greeting::kTls);
  EXPECT_EQ(GreetingOf("\x15\x03\x01\x00\x02\x02\x46"s), Greeting::kTls) << "an alert";
  EXPECT_EQ(GreetingOf("HTTP/1.1 400 Bad Request\r\n"), Greeting::kHttp1);
  EXPECT_EQ(GreetingOf("\0\0\x12\4\0\0\0\0\0\0\3"s), Greeting::kHttp2);
  EXPECT_EQ(GreetingOf("\0\0\0\4\0\0\0\0\0"s), Greeting::kHttp2) << "empty SETTINGS";
  EXPECT_EQ(GreetingOf("SSH-2.0-OpenSSH_9.2\r\n"), Greeting::kOther);
}

TEST(GreetingTest, RefusesFrameOfNoSettings) {
  EXPECT_EQ(GreetingOf("\0\0\x12\7\0\0\0\0\0"s), Greeting::kOther) << "GOAWAY";
  EXPECT_EQ(GreetingOf("\0\0\x11\4\0\0\0\0\0"s), Greeting::kOther) << "17 bytes are no settings";
  EXPECT_EQ(GreetingOf("\0\0\x12\4\0\0\0\0\1"s), Greeting::kOther) << "on a stream";
  EXPECT_EQ(GreetingOf("\xff\xff\xfa\4\0\0\0\0\0"s), Greeting::kOther) << "far too many";
  EXPECT_EQ(GreetingOf("\0\0\x12\4"s), Greeting::kOther) << "cut";
}

TEST(GreetingTest, MakesExcerptShortAndEscaped) {
  EXPECT_EQ(Excerpt("SSH-2.0-x\r\nmore"), "SSH-2.0-x");
  EXPECT_EQ(Excerpt("\x1b[2Jgone"), "\\x1b[2Jgone");
  EXPECT_EQ(Excerpt(std::string(100, 'a')).size(), 40u);
}

}  // namespace
}  // namespace distro
