#include "common/client/member/member_state.h"

#include <gtest/gtest.h>

#include "common/base/reason.h"

namespace distro {
namespace {

TEST(MemberStateTest, RejoinsWithRunAndHighestEpoch) {
  v1::JoinResponse response;
  response.set_run_id("run-1");
  response.set_epoch(3);
  MemberState state{v1::JoinRequest(), response};
  state.ObserveEpoch(EpochId(8));
  EXPECT_EQ(state.RejoinRequest().run_id(), "run-1");
  EXPECT_EQ(state.RejoinRequest().epoch(), 8u);
}

TEST(MemberStateTest, RefusesOtherRunAndLayout) {
  v1::JoinResponse response;
  response.set_run_id("run-1");
  response.set_manifest_hash("m");
  response.mutable_config()->set_segment_blocks(8);
  const MemberState state(v1::JoinRequest(), response);
  EXPECT_TRUE(state.CheckSameRun(response).ok());
  EXPECT_EQ(state.run_id(), "run-1");
  for (int field = 0; field < 3; ++field) {
    v1::JoinResponse other = response;
    if (field == 0) other.set_run_id("run-2");
    if (field == 1) other.set_manifest_hash("n");
    if (field == 2) other.mutable_config()->set_segment_blocks(9);
    EXPECT_EQ(ReasonOf(state.CheckSameRun(other)), "other_run") << field;
  }
}

}  // namespace
}  // namespace distro
