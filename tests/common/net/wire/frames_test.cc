#include "common/net/wire/frames.h"

#include <string>

#include "gtest/gtest.h"

namespace distro {
namespace {

using absl::StatusCode;

TEST(FramesTest, AreFullButTheLast) {
  const uint64_t total = 2 * kFrameBytes + 5;
  EXPECT_EQ(FrameBytes(0, total), kFrameBytes);
  EXPECT_EQ(FrameBytes(kFrameBytes, total), kFrameBytes);
  EXPECT_EQ(FrameBytes(2 * kFrameBytes, total), 5u);
  EXPECT_EQ(FrameBytes(total, total), 0u);
}

TEST(PayloadAssemblerTest, JoinsFramesInOrder) {
  PayloadAssembler payload(10);
  ASSERT_TRUE(payload.Add(0, "abc", 5).ok());
  EXPECT_FALSE(payload.complete());
  EXPECT_EQ(payload.received(), 3u);
  ASSERT_TRUE(payload.Add(3, "de", 5).ok());
  ASSERT_TRUE(payload.complete());
  EXPECT_EQ(payload.Take(), "abcde");
}

TEST(PayloadAssemblerTest, RefusesWhatTheLimitDoesNotAllow) {
  PayloadAssembler payload(10);
  EXPECT_EQ(payload.Add(0, "abc", 11).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(payload.Add(0, "abc", UINT64_MAX).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(payload.Add(0, "abc", 0).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(payload.received(), 0u);
}

TEST(PayloadAssemblerTest, RefusesEmptyAndOversizedFrames) {
  PayloadAssembler payload(10 * kMaxFrameBytes);
  EXPECT_EQ(payload.Add(0, "", 5).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(payload.Add(0, std::string(kMaxFrameBytes + 1, 'x'), 2 * kMaxFrameBytes).code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(payload.Add(0, std::string(kMaxFrameBytes, 'x'), 2 * kMaxFrameBytes).ok());
}

TEST(PayloadAssemblerTest, RefusesGapsRepeatsAndBytesPastTheEnd) {
  PayloadAssembler payload(10);
  ASSERT_TRUE(payload.Add(0, "abc", 5).ok());
  EXPECT_EQ(payload.Add(0, "abc", 5).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(payload.Add(4, "e", 5).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(payload.Add(UINT64_MAX, "e", 5).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(payload.Add(3, "def", 5).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(payload.Add(3, "de", 6).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(payload.Add(3, "de", 5).ok());
  EXPECT_EQ(payload.Add(5, "f", 5).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace distro
