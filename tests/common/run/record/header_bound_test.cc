// The bound of a header's bytes against headers that are as large as they can be.
#include "common/run/record/header_bound.h"

#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/model/layout/layout.h"
#include "common/run/record/committed_round.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// With the longest names and the longest numbers that can occur.
v1::RoundHeader LargestHeader(uint32_t members, uint32_t segments) {
  v1::RoundHeader header;
  header.set_round(UINT64_MAX);
  header.set_epoch(UINT64_MAX);
  header.mutable_step()->set_eta_bits(1);
  header.mutable_step()->set_eta_lambda_bits(1);
  header.mutable_step()->set_beta(0.5);
  header.mutable_step()->set_clip_norm(1);
  header.mutable_step()->set_kept_per_block(4096);
  for (uint32_t i = 0; i < members; ++i) {
    v1::Member& member = *header.add_members();
    member.set_name(absl::StrFormat("%063d", i));
    member.set_incarnation(UINT64_MAX);
    member.set_weight(1);
    member.set_state(v1::MEMBER_STATE_SUSPECT);
    member.set_state_hash(UINT64_MAX);
    member.set_abstained(true);
    member.set_state_reason(std::string(300, 'r'));
    member.set_probation_left(1000);
    v1::Slot& slot = *header.add_slots();
    slot.set_worker(member.name());
    slot.set_first_sample(UINT64_MAX);
    slot.set_samples(1 << 20);
    member.set_local_steps(1000);
    for (v1::SampleRange* range : {member.add_given(), slot.add_more()}) {
      range->set_first_sample(UINT64_MAX);
      range->set_samples(UINT64_MAX);
    }
  }
  for (uint32_t i = 0; i < segments; ++i) {
    v1::CommittedSegment& segment = *header.add_segments();
    segment.set_included(std::string((members + 7) / 8, '\xff'));
    segment.set_payload_bytes(UINT32_MAX);
    segment.set_checksum(UINT64_MAX);
    segment.set_sha256(std::string(32, '\xff'));
  }
  header.set_next_sample(UINT64_MAX);
  header.set_predecessor_hash(UINT64_MAX);
  header.mutable_committed_at()->set_seconds(int64_t{1} << 40);
  header.mutable_committed_at()->set_nanos(999'999'999);
  header.mutable_duration()->set_seconds(int64_t{1} << 40);
  header.mutable_duration()->set_nanos(999'999'999);
  header.set_reason("complete");
  header.set_paused(true);
  header.mutable_extension()->set_rounds(uint64_t{1} << 32);
  header.mutable_extension()->set_from_round((uint64_t{1} << 32) - 1);
  header.mutable_extension()->set_from_rate(0.5);
  return header;
}

Layout LayoutOf(int tensors) {
  std::vector<TensorSpec> specs;
  for (int i = 0; i < tensors; ++i)
    specs.push_back({.name = absl::StrFormat("t%03d", i), .shape = {1}});
  return *Layout::Create(*Manifest::Create(specs), 16384);
}

v1::RunConfig DeltaConfig(uint32_t local_steps) {
  v1::RunConfig config;
  config.set_method(v1::METHOD_DELTAS);
  config.set_local_steps(local_steps);
  return config;
}

// With the largest numbers that there can be.
void AddDeltas(int tensors, uint32_t local_steps, v1::RoundHeader* header) {
  v1::DeltaParameters& deltas = *header->mutable_step()->mutable_deltas();
  for (uint32_t i = 0; i < local_steps; ++i) deltas.add_inner_rate_bits(UINT32_MAX);
  deltas.set_outer_rate_bits(UINT32_MAX);
  deltas.set_error_decay(0.5f);
  deltas.set_caps(std::string(tensors, '\xff'));
  deltas.set_as_dct(std::string((tensors + 7) / 8, '\xff'));
  for (int i = 0; i < tensors; ++i) header->add_scale_medians(1 + 255);
}

TEST(HeaderBoundTest, FitsLargestHeaderWithoutReasons) {
  for (const uint32_t segments : {1u, 3u, 100u, 1043u, 5000u, 17'000u}) {
    const uint32_t most = MostMembers({.segments = segments});
    ASSERT_GT(most, 0u) << segments;
    v1::RoundHeader header = LargestHeader(most, segments);
    DropReasonsUnlessFits(&header);
    EXPECT_LE(header.ByteSizeLong(), kMaxRoundHeaderBytes) << segments;
  }
}

TEST(HeaderBoundTest, IsNearWhatFits) {
  for (const uint32_t segments : {1u, 1043u, 5000u}) {
    v1::RoundHeader header = LargestHeader(MostMembers({.segments = segments}) * 5 / 4, segments);
    DropReasonsUnlessFits(&header);
    EXPECT_GT(header.ByteSizeLong(), kMaxRoundHeaderBytes) << segments;
  }
}

TEST(HeaderBoundTest, OnlyAHeaderThatDoesNotFitLosesItsReasons) {
  v1::RoundHeader header = LargestHeader(10, 10);
  DropReasonsUnlessFits(&header);
  EXPECT_EQ(header.members(9).state_reason(), std::string(300, 'r'));
  v1::RoundHeader larger = LargestHeader(MostMembers({.segments = 10}), 10);
  DropReasonsUnlessFits(&larger);
  EXPECT_EQ(larger.members(9).state_reason(), "");
}

TEST(HeaderBoundTest, SignsAddNothing) {
  v1::RunConfig signs;
  signs.set_method(v1::METHOD_SIGNS);
  EXPECT_EQ(HeaderShapeOf(signs, LayoutOf(300)).method_bytes, 0u);
}

TEST(HeaderBoundTest, BoundsDeltasClosely) {
  const uint64_t before = LargestHeader(3, 2).ByteSizeLong();
  for (int tensors = 1; tensors <= 300; ++tensors) {
    const Layout layout = LayoutOf(tensors);
    for (const uint32_t local_steps : {1u, 5u, 31u, 32u, 1000u}) {
      v1::RoundHeader header = LargestHeader(3, 2);
      AddDeltas(tensors, local_steps, &header);
      const uint64_t bound = HeaderShapeOf(DeltaConfig(local_steps), layout).method_bytes;
      const uint64_t added = header.ByteSizeLong() - before;
      EXPECT_LE(added, bound) << tensors << " tensors, " << local_steps << " steps";
      EXPECT_GE(added + 64, bound) << tensors << " tensors, " << local_steps << " steps";
    }
  }
}

TEST(HeaderBoundTest, FitsLargestHeaderOfDeltas) {
  HeaderShape shape = HeaderShapeOf(DeltaConfig(1000), LayoutOf(300));
  for (const uint32_t segments : {1u, 1043u, 17'000u}) {
    shape.segments = segments;
    const uint32_t most = MostMembers(shape);
    EXPECT_LE(most, MostMembers({.segments = segments})) << segments;
    v1::RoundHeader header = LargestHeader(most, segments);
    AddDeltas(300, 1000, &header);
    DropReasonsUnlessFits(&header);
    EXPECT_LE(header.ByteSizeLong(), kMaxRoundHeaderBytes) << segments;
  }
}

// docs/protocol.md, "Workers and segments of a run".
TEST(HeaderBoundTest, MatchesPage) {
  std::vector<uint32_t> most;
  for (const uint32_t segments : {1, 100, 1000, 2000, 5000, 10'000, 15'000, 17'349, 17'350})
    most.push_back(MostMembers({.segments = segments}));
  EXPECT_THAT(most, ElementsAre(4228, 3999, 2624, 1834, 840, 296, 72, 1, 0));
}

TEST(HeaderBoundTest, FewerMembersFitWhereThereAreMoreSegments) {
  EXPECT_GT(MostMembers({.segments = 1}), MostMembers({.segments = 1000}));
  EXPECT_GT(MostMembers({.segments = 1000}), MostMembers({.segments = 15'000}));
  EXPECT_EQ(MostMembers({.segments = 65'536}), 0u);
}

TEST(HeaderBoundTest, RefusesTooLargeConfiguration) {
  v1::RunConfig config;
  config.set_max_workers(MostMembers({.segments = 1043}));
  EXPECT_TRUE(CheckHeaderBound(config, {.segments = 1043}).ok());
  config.set_max_workers(MostMembers({.segments = 1043}) + 1);
  const absl::Status refused = CheckHeaderBound(config, {.segments = 1043});
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr(absl::StrFormat("set max_workers to at most %d or raise segment_blocks",
                                        MostMembers({.segments = 1043}))));
  config.set_max_workers(1);
  EXPECT_THAT(std::string(CheckHeaderBound(config, {.segments = 65'536}).message()),
              HasSubstr("1 workers in 65536 segments, with 3 ranges of samples a worker, takes "
                        "3867017 bytes of 1024000: raise segment_blocks"));
}

TEST(HeaderBoundTest, WhereStepsTakeTheRoomTheRemedyIsFewerOfThem) {
  v1::RunConfig config;
  config.mutable_round_window()->set_seconds(60);
  config.set_max_workers(256);
  const HeaderShape shape{.segments = 1, .ranges = 3 * 1000 - 1};
  const std::string message(CheckHeaderBound(config, shape).message());
  EXPECT_THAT(message, HasSubstr("256 workers in 1 segments, with 3000 ranges of samples"));
  EXPECT_THAT(message, HasSubstr(absl::StrFormat("set max_workers to at most %d or lower "
                                                 "local_steps",
                                                 MostMembers(shape))));
}

}  // namespace
}  // namespace distro
