#include "common/net/http/http_limits.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

constexpr size_t kBytes = 100;

TEST(HttpPlacesTest, KeepsAllWhilePlacesAreFree) {
  HttpPlaces places(2, 2, kBytes);
  EXPECT_EQ(places.Take(1, "a"), std::nullopt);
  EXPECT_EQ(places.Take(2, "b"), std::nullopt);
  places.Leave(1);
  EXPECT_EQ(places.Take(3, "b"), std::nullopt);
}

TEST(HttpPlacesTest, DropsOldestThatHasNotAsked) {
  HttpPlaces places(3, 3, kBytes);
  for (const uint64_t id : {1, 2, 3}) places.Take(id, "a");
  places.Asked(1);
  EXPECT_EQ(places.Take(4, "b"), 2);
}

TEST(HttpPlacesTest, DropsOldestWhereAllAsked) {
  HttpPlaces places(2, 2, kBytes);
  for (const uint64_t id : {1, 2}) {
    places.Take(id, "a");
    places.Asked(id);
  }
  EXPECT_EQ(places.Take(3, "b"), 1);
}

TEST(HttpPlacesTest, TakesPlaceFromSamePeer) {
  HttpPlaces places(4, 2, kBytes);
  places.Take(1, "b");
  places.Take(2, "a");
  places.Take(3, "a");
  places.Asked(2);
  EXPECT_EQ(places.Take(4, "a"), 3);  // neither b's, which is older, nor one that has asked
}

TEST(HttpPlacesTest, DropsOldestSenderForAnswer) {
  HttpPlaces places(4, 4, kBytes);
  for (const uint64_t id : {1, 2, 3, 4}) places.Take(id, "a");
  EXPECT_EQ(places.Hold(2, 60), std::nullopt);
  EXPECT_EQ(places.Hold(1, 40), std::nullopt);
  EXPECT_EQ(places.Hold(4, 90), 1);
  places.Leave(1);
  EXPECT_EQ(places.Hold(4, 90), 2);
  places.Leave(2);
  EXPECT_EQ(places.Hold(4, 90), std::nullopt);
}

TEST(HttpPlacesTest, SendsHugeAnswerAlone) {
  HttpPlaces places(2, 2, kBytes);
  places.Take(1, "a");
  EXPECT_EQ(places.Hold(1, kBytes + 1), std::nullopt);
}

}  // namespace
}  // namespace distro
