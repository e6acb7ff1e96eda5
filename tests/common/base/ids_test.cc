#include "common/base/ids.h"

#include <type_traits>

#include "gtest/gtest.h"

namespace distro {
namespace {

TEST(IdsTest, IdsAreDistinctTypesThatDoNotConvert) {
  static_assert(!std::is_convertible_v<uint64_t, RoundId>);
  static_assert(!std::is_convertible_v<RoundId, EpochId>);
  EXPECT_LT(RoundId(1), RoundId(1).Next());
  EXPECT_EQ(RoundId(), RoundId(0));
}

TEST(ValidateNameTest, AcceptsTheWholeAlphabetAndBothLengths) {
  EXPECT_EQ(ValidateName("a", "worker"), absl::OkStatus());
  EXPECT_EQ(ValidateName("abcxyz-0129", "worker"), absl::OkStatus());
  EXPECT_EQ(ValidateName(std::string(63, 'a'), "worker"), absl::OkStatus());
}

TEST(ValidateNameTest, NamesTheFault) {
  EXPECT_EQ(
      ValidateName("", "worker"),
      absl::InvalidArgumentError("worker: has 0 characters, 1 to 63 of [a-z0-9-] are allowed"));
  EXPECT_EQ(ValidateName(std::string(64, 'a'), "worker").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ValidateName("node_1", "worker"),
            absl::InvalidArgumentError("worker: character 4 (0x5f) is not one of [a-z0-9-]"));
  for (const char* name : {"A", "a b", "a/b", "\xc3\xa9", "a\n", "a."}) {
    EXPECT_EQ(ValidateName(name, "run").code(), absl::StatusCode::kInvalidArgument) << name;
  }
  EXPECT_EQ(ValidateName(absl::string_view("a\0", 2), "run").code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace distro
