#include "common/net/http/http_target.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr absl::string_view kTarget = "/a/b?verbose&c=d%20e+f&c=again&g=%2&h=%zz&=x";

TEST(HttpTargetTest, CutsPathAndQuery) {
  const auto request = ParseHttpTarget(kTarget);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->path, "/a/b");
  EXPECT_THAT(request->query, ElementsAre(Pair("", "x"), Pair("c", "d e f"), Pair("g", "%2"),
                                          Pair("h", "%zz"), Pair("verbose", "")));
}

TEST(HttpTargetTest, KeepsPathAsSent) {
  const auto request = ParseHttpTarget("/a%20b+c");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->path, "/a%20b+c");
  EXPECT_THAT(request->query, IsEmpty());
}

TEST(HttpTargetTest, RefusesWhatIsNoPath) {
  for (const absl::string_view target : {"", "*", "http://host/a", "a"}) {
    EXPECT_EQ(ParseHttpTarget(target).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

// No result is longer than the input.
void ExpectNoMoreThan(const std::string& target) {
  const auto request = ParseHttpTarget(target);
  if (!request.ok()) {
    EXPECT_EQ(request.status().code(), absl::StatusCode::kInvalidArgument);
    return;
  }
  size_t bytes = request->path.size();
  for (const auto& [name, value] : request->query) bytes += name.size() + value.size();
  EXPECT_LE(bytes, target.size());
}

TEST(HttpTargetTest, IsCutOffAtEveryByte) {
  for (size_t size = 0; size <= kTarget.size(); ++size)
    ExpectNoMoreThan(std::string(kTarget.substr(0, size)));
}

TEST(HttpTargetTest, IsDamagedAtEveryByte) {
  for (size_t at = 0; at < kTarget.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged(kTarget);
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      ExpectNoMoreThan(damaged);
    }
  }
}

}  // namespace
}  // namespace distro
