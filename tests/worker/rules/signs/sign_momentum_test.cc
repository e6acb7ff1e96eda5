#include "worker/rules/signs/sign_momentum.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::worker {
namespace {

using ::testing::ElementsAre;

SignUpdate SignsOf(int k, const std::vector<uint16_t>& positions,
                   const std::vector<float>& values) {
  SignUpdate update{.k = k, .positions = {}, .signs = {}};
  AppendSigns(positions, values, &update);
  return update;
}

TEST(SignsTest, VotesAreTheSignsOfCoefficients) {
  const SignUpdate update = SignsOf(2, {3, 9, 0, 4095}, {0.5f, -2.0f, -1e-45f, 3.0f});
  EXPECT_THAT(update.positions, ElementsAre(3, 9, 0, 4095));
  EXPECT_THAT(update.signs, ElementsAre(1, -1, -1, 1));
}

TEST(SignsTest, CountsZeroAsPlus) {
  EXPECT_THAT(SignsOf(2, {1, 2}, {0.0f, -1.0f}).signs, ElementsAre(1, -1));
  EXPECT_THAT(SignsOf(2, {1, 2}, {-0.0f, -1.0f}).signs, ElementsAre(1, -1));
}

TEST(SignsTest, OmitsBlockOfZeros) {
  const SignUpdate update = SignsOf(2, {0, 1, 5, 6}, {0.0f, -0.0f, 1.0f, 1.0f});
  EXPECT_THAT(update.positions, ElementsAre(0, 0, 5, 6));
  EXPECT_THAT(update.signs, ElementsAre(0, 0, 1, 1));
}

TEST(SignsTest, BlocksComeBehindThoseThatAreThere) {
  SignUpdate update = SignsOf(2, {3, 9}, {0.5f, -2.0f});
  AppendSigns({0, 1, 5, 6}, {0.0f, 0.0f, -1.0f, 1.0f}, &update);
  EXPECT_EQ(update, SignsOf(2, {3, 9, 0, 1, 5, 6}, {0.5f, -2.0f, 0.0f, 0.0f, -1.0f, 1.0f}));
}

}  // namespace
}  // namespace distro::worker
