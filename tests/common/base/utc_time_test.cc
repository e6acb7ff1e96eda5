#include "common/base/utc_time.h"

#include "gtest/gtest.h"

namespace distro {
namespace {

const absl::Time kEve =
    absl::FromCivil(absl::CivilSecond(2026, 12, 24, 1, 2, 3), absl::UTCTimeZone());

TEST(UtcTimeTest, WritesWholeSecondsRoundedDown) {
  EXPECT_EQ(UtcText(kEve), "2026-12-24T01:02:03Z");
  EXPECT_EQ(UtcText(kEve + absl::Milliseconds(999)), "2026-12-24T01:02:03Z");
}

TEST(UtcTimeTest, ReadsWhatItWrites) { EXPECT_EQ(ParseUtcText(UtcText(kEve)), kEve); }

TEST(UtcTimeTest, ReadsNoOtherText) {
  for (const absl::string_view text :
       {"", "2026-12-24", "2026-12-24T01:02:03", "2026-13-24T01:02:03Z", "2026-12-24T01:02:03Zx"})
    EXPECT_EQ(ParseUtcText(text), std::nullopt) << text;
}

}  // namespace
}  // namespace distro
