#include "common/model/checkpoint/shard_index.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr char kGood[] =
    R"({"metadata": {"total_size": 8}, "weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})";

TEST(ShardIndexTest, GivesTheFileOfEveryTensor) {
  const auto index = ParseShardIndex(kGood);
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_THAT(*index,
              ElementsAre(Pair("a", "model-1.safetensors"), Pair("b", "model-2.safetensors")));
}

TEST(ShardIndexTest, RefusesFilesOutsideTheFolderByTensor) {
  for (const char* file : {"../m.safetensors", "/m.safetensors", "a/m.safetensors", "..", "",
                           "m.bin", ".safetensors", "..safetensors", "m\\u0000.safetensors"}) {
    const absl::Status status =
        ParseShardIndex(absl::StrCat(R"({"weight_map": {"w.x": ")", file, "\"}}")).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << file;
    EXPECT_THAT(std::string(status.message()), HasSubstr("tensor w.x"));
  }
}

TEST(ShardIndexTest, RefusesWhatIsNotAWeightMap) {
  for (const char* text : {"", "[]", "{}", R"({"weight_map": []})", R"({"weight_map": {}})",
                           R"({"weight_map": {"a": 1}})",
                           R"({"weight_map": {"a": "m.safetensors", "a": "m.safetensors"}})"}) {
    const absl::Status status = ParseShardIndex(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(kShardIndexName)));
  }
}

TEST(ShardIndexTest, DamagedTextIsAnIndexOrInvalidArgument) {
  const std::string text = kGood;
  for (size_t i = 0; i < text.size(); ++i) {
    EXPECT_EQ(ParseShardIndex(text.substr(0, i)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << i;
    for (int flip = 1; flip < 256; ++flip) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      const absl::Status status = ParseShardIndex(damaged).status();
      EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument) << status;
    }
  }
}

}  // namespace
}  // namespace distro
