#include "server/session/admission.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::server {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;

std::vector<std::string> Names(const v1::StoredAdmission& admission) {
  std::vector<std::string> names;
  for (const v1::QuarantinedWorker& entry : admission.quarantined()) names.push_back(entry.name());
  return names;
}

TEST(AdmissionTest, NamesAreAscending) {
  v1::StoredAdmission admission;
  for (const char* name : {"m", "a", "z", "b"})
    admission = *WithQuarantined(admission, name, "why", RoundId(3));
  EXPECT_THAT(Names(admission), ElementsAre("a", "b", "m", "z"));
  admission = *WithoutQuarantined(admission, "b");
  EXPECT_THAT(Names(admission), ElementsAre("a", "m", "z"));
}

TEST(AdmissionTest, TakesReasonOfRepeat) {
  v1::StoredAdmission admission = *WithQuarantined({}, "a", "one", RoundId(3));
  admission = *WithQuarantined(admission, "a", "two", RoundId(4));
  ASSERT_EQ(admission.quarantined_size(), 1);
  EXPECT_EQ(admission.quarantined(0).reason(), "two");
  EXPECT_EQ(admission.quarantined(0).round(), 3u);
}

TEST(AdmissionTest, ReportsUnknownName) {
  const v1::StoredAdmission admission = *WithQuarantined({}, "b", "", RoundId(0));
  EXPECT_EQ(WithoutQuarantined(admission, "a").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(WithoutQuarantined(admission, "c").status().code(), StatusCode::kNotFound);
}

TEST(AdmissionTest, BadNamesAndLongReasonsAreInvalid) {
  EXPECT_EQ(WithQuarantined({}, "A", "", RoundId(0)).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(WithQuarantined({}, "", "", RoundId(0)).status().code(), StatusCode::kInvalidArgument);
  const std::string longest(kMaxReasonBytes, 'x');
  EXPECT_TRUE(WithQuarantined({}, "a", longest, RoundId(0)).ok());
  EXPECT_TRUE(WithPause({}, longest).ok());
  EXPECT_EQ(WithQuarantined({}, "a", longest + "x", RoundId(0)).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(WithPause({}, longest + "x").status().code(), StatusCode::kInvalidArgument);
}

TEST(AdmissionTest, PauseAndQuarantineDoNotTouchEachOther) {
  v1::StoredAdmission admission = *WithQuarantined({}, "a", "why", RoundId(3));
  admission = *WithPause(admission, "maintenance");
  EXPECT_TRUE(admission.paused());
  EXPECT_EQ(admission.pause_reason(), "maintenance");
  EXPECT_THAT(Names(admission), ElementsAre("a"));
  admission = WithoutPause(admission);
  EXPECT_FALSE(admission.paused());
  EXPECT_EQ(admission.pause_reason(), "");
  EXPECT_THAT(Names(admission), ElementsAre("a"));
}

}  // namespace
}  // namespace distro::server
