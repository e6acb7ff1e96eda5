#include "common/net/http/object_path.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

const std::string kDigits = "00" + std::string(60, 'a') + "ff";

TEST(ObjectPathTest, NamesResult) {
  const std::string path = absl::StrCat("/v1/objects/demo-1a2b/42/7-", kDigits);
  const std::optional<ObjectName> name = ParseObjectPath(path);
  ASSERT_TRUE(name && name->result);
  EXPECT_EQ(name->run_id, "demo-1a2b");
  EXPECT_EQ(name->result->round, RoundId(42));
  EXPECT_EQ(name->result->segment, SegmentId(7));
  EXPECT_EQ(name->sha256.size(), 32u);
  EXPECT_EQ(name->sha256.back(), '\xff');
  EXPECT_EQ(ObjectPath(*name), path);
}

TEST(ObjectPathTest, NamesSnapshot) {
  const std::string path = absl::StrCat("/v1/objects/demo-1a2b/snapshots/", kDigits);
  const std::optional<ObjectName> name = ParseObjectPath(path);
  ASSERT_TRUE(name);
  EXPECT_FALSE(name->result);
  EXPECT_EQ(ObjectPath(*name), path);
}

// One object has one name: a cache must not keep it twice.
TEST(ObjectPathTest, RefusesWhatIsNoName) {
  const std::string upper = "00" + std::string(60, 'A') + "ff";
  for (const std::string& path :
       std::vector<std::string>{"", "/", "/v1/objects/", "/v1/objects/run", "/v1/objects/run/1",
                                "/v1/objects/run/1/2-", absl::StrCat("/v1/objects/run/1/2-", upper),
                                absl::StrCat("/v1/objects/run/01/2-", kDigits),
                                absl::StrCat("/v1/objects/run/1/+2-", kDigits),
                                absl::StrCat("/v1/objects/run/1/2", kDigits),
                                absl::StrCat("/v1/objects/run/1/", kDigits),
                                absl::StrCat("/v1/objects/run/1/2-", kDigits, "0"),
                                absl::StrCat("/v1/objects/run/1/2-", kDigits, "/"),
                                absl::StrCat("/v1/objects/run/-1/2-", kDigits),
                                absl::StrCat("/v1/objects/run/18446744073709551616/2-", kDigits),
                                absl::StrCat("/v1/objects/run/1/4294967296-", kDigits),
                                absl::StrCat("/v1/objects/run/snapshots/", std::string(64, 'g')),
                                absl::StrCat("/v2/objects/run/snapshots/", kDigits)}) {
    EXPECT_FALSE(ParseObjectPath(path)) << path;
  }
}

TEST(ObjectPathTest, RefusesEveryCutName) {
  const std::string path = absl::StrCat("/v1/objects/demo-1a2b/42/7-", kDigits);
  for (size_t size = 0; size < path.size(); ++size)
    EXPECT_FALSE(ParseObjectPath(path.substr(0, size))) << size;
}

// Whatever is accepted is the name of exactly one object.
TEST(ObjectPathTest, ReturnsToTheSamePathWithEveryByteFlipped) {
  const std::string path = absl::StrCat("/v1/objects/demo-1a2b/42/7-", kDigits);
  for (size_t at = 0; at < path.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = path;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      const std::optional<ObjectName> name = ParseObjectPath(flipped);
      if (!name) continue;
      EXPECT_EQ(ObjectPath(*name), flipped);
    }
  }
}

}  // namespace
}  // namespace distro
