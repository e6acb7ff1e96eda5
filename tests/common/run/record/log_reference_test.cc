#include "common/run/record/log_reference.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace distro {
namespace {

constexpr uint64_t kNone = 0;  // no hash: it did not upload
constexpr LogReference kMajority{7, true}, kFew{7, false};

struct Voice {
  uint64_t state_hash;
  bool included = true;
};

// Each in one of three segments only, one after another.
v1::RoundHeader HeaderOf(const std::vector<Voice>& voices) {
  v1::RoundHeader header;
  for (int s = 0; s < 3; ++s)
    header.add_segments()->set_included(std::string((voices.size() + 7) / 8, '\0'));
  for (size_t i = 0; i < voices.size(); ++i) {
    v1::Member* member = header.add_members();
    if (voices[i].state_hash != kNone) member->set_state_hash(voices[i].state_hash);
    if (!voices[i].included) continue;
    std::string& bits = *header.mutable_segments(static_cast<int>(i % 3))->mutable_included();
    bits[i / 8] = static_cast<char>(bits[i / 8] | 1 << i % 8);
  }
  return header;
}

TEST(LogReferenceTest, OfThreeOrMoreMoreThanHalfDecide) {
  EXPECT_EQ(ReferenceOf(HeaderOf({{7}, {7}, {7}})), kMajority);
  EXPECT_EQ(ReferenceOf(HeaderOf({{7}, {8}, {7}})), kMajority);
  EXPECT_EQ(ReferenceOf(HeaderOf({{7}, {8}, {9}})), std::nullopt);
  EXPECT_EQ(ReferenceOf(HeaderOf({{7}, {8}, {7}, {8}})), std::nullopt);
  EXPECT_EQ(ReferenceOf(HeaderOf({{7}, {8}, {7}, {8}, {7}})), kMajority);
}

TEST(LogReferenceTest, OfFewerAllMustAgree) {
  EXPECT_EQ(ReferenceOf(HeaderOf({{7}, {7}})), kFew);
  EXPECT_EQ(ReferenceOf(HeaderOf({{7}, {8}})), std::nullopt);
  EXPECT_EQ(ReferenceOf(HeaderOf({{7}})), kFew);
  EXPECT_EQ(ReferenceOf(HeaderOf({})), std::nullopt);
}

// Workers that are on probation, late or abstaining do not affect the reference, in any number.
TEST(LogReferenceTest, OnlyMembersThatAreIncludedCount) {
  EXPECT_EQ(ReferenceOf(HeaderOf({{8, false}, {7}, {8, false}, {8, false}})), kFew);
  EXPECT_EQ(ReferenceOf(HeaderOf({{7}, {7}, {7}, {8, false}, {8, false}, {8, false}, {8, false}})),
            kMajority);
  EXPECT_EQ(ReferenceOf(HeaderOf({{7, false}, {7, false}, {7, false}})), std::nullopt);
}

TEST(LogReferenceTest, MembersBeyondTheFirstByteCount) {
  std::vector<Voice> voices(16, {8, false});
  voices.push_back({7});
  voices.push_back({9, false});
  EXPECT_EQ(ReferenceOf(HeaderOf(voices)), kFew);
}

TEST(LogReferenceTest, IgnoresMemberWithoutHash) {
  EXPECT_EQ(ReferenceOf(HeaderOf({{7}, {kNone}, {7}})), kFew);
}

}  // namespace
}  // namespace distro
