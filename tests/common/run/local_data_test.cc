#include "common/run/local_data.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::RunConfig ConfigOf(v1::Data data) {
  v1::RunConfig config;
  config.set_data(data);
  return config;
}

TEST(DataWeightsTest, GivesMiddleWorkerEight) {
  EXPECT_THAT(DataWeights({100, 1000, 4000}), ElementsAre(1, 8, 15));
  EXPECT_THAT(DataWeights({1000, 1000, 1500, 500}), ElementsAre(8, 8, 12, 4));
  EXPECT_THAT(DataWeights({7}), ElementsAre(8));
}

TEST(DataWeightsTest, OfAnEvenNumberTheLowerMiddleOneIs) {
  EXPECT_THAT(DataWeights({100, 200}), ElementsAre(8, 15));
}

TEST(DataWeightsTest, RoundsHalfUp) {
  EXPECT_THAT(DataWeights({16, 16, 3, 17}), ElementsAre(8, 8, 2, 9)) << "1.5 and 8.5";
}

TEST(DataWeightsTest, StaysBelowTwiceTheMiddle) {
  EXPECT_THAT(DataWeights({kMostOwnTokens, 5, 5}), ElementsAre(15, 8, 8));
  EXPECT_THAT(DataWeights({kMostOwnTokens, kMostOwnTokens, 1}), ElementsAre(8, 8, 1));
}

TEST(DataWeightsTest, GivesOneWithoutTokens) {
  EXPECT_THAT(DataWeights({0, 10, 10}), ElementsAre(1, 8, 8));
  EXPECT_THAT(DataWeights({0, 0}), ElementsAre(1, 1));
  EXPECT_THAT(DataWeights({}), IsEmpty());
}

TEST(CheckOwnTokensTest, WantsTokensOfLocalData) {
  const v1::RunConfig local = ConfigOf(v1::DATA_LOCAL);
  EXPECT_TRUE(CheckOwnTokens(local, 1).ok());
  EXPECT_TRUE(CheckOwnTokens(local, kMostOwnTokens).ok());
  EXPECT_EQ(CheckOwnTokens(local, kMostOwnTokens + 1).code(), absl::StatusCode::kInvalidArgument);
  const absl::Status none = CheckOwnTokens(local, 0);
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(none.message()), HasSubstr("--public_data"));
}

TEST(CheckOwnTokensTest, RefusesTokensOfSharedData) {
  EXPECT_TRUE(CheckOwnTokens(ConfigOf(v1::DATA_SHARED), 0).ok());
  const absl::Status some = CheckOwnTokens(ConfigOf(v1::DATA_SHARED), 1);
  EXPECT_EQ(some.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(some.message()), HasSubstr("leave --public_data out"));
}

}  // namespace
}  // namespace distro
