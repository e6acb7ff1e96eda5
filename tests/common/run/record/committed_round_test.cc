#include "common/run/record/committed_round.h"

#include <bit>
#include <functional>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/round_builder.h"

namespace distro {
namespace {

using ::distro::testing::BuildDeltaRound;
using ::distro::testing::BuildRound;
using ::distro::testing::BuiltRound;
using ::distro::testing::SmallLayout;
using ::testing::HasSubstr;

// Expects that the header of round 7 with one change is refused, and that the message names round
// and field.
void ExpectRefused(absl::string_view field, const std::function<void(v1::RoundHeader&)>& change) {
  const Layout layout = SmallLayout();
  BuiltRound round = BuildRound(layout, RoundId(7), 1);
  change(round.header);
  const absl::Status status = ParseRoundHeader(round.header_bytes(), layout).status();
  ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field;
  EXPECT_THAT(std::string(status.message()), HasSubstr("round 7: header: "));
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(field)));
}

TEST(ParseRoundHeaderTest, ReadsAGoodHeader) {
  const Layout layout = SmallLayout();
  const BuiltRound round = BuildRound(layout, RoundId(7), 99);
  const auto header = ParseRoundHeader(round.header_bytes(), layout);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->SerializeAsString(), round.header_bytes());
}

TEST(ParseRoundHeaderTest, RefusesABadStep) {
  ExpectRefused("epoch", [](auto& h) { h.set_epoch(0); });
  ExpectRefused("eta_bits", [](auto& h) { h.mutable_step()->set_eta_bits(0x7fc00000); });
  ExpectRefused("eta_bits", [](auto& h) { h.mutable_step()->set_eta_bits(0x80000000); });
  ExpectRefused("eta_lambda_bits",
                [](auto& h) { h.mutable_step()->set_eta_lambda_bits(0x7f800000); });
  ExpectRefused("beta", [](auto& h) { h.mutable_step()->set_beta(1); });
  ExpectRefused(
      "beta", [](auto& h) { h.mutable_step()->set_beta(std::numeric_limits<float>::quiet_NaN()); });
  ExpectRefused("clip_norm", [](auto& h) { h.mutable_step()->set_clip_norm(0); });
  ExpectRefused("kept_per_block", [](auto& h) { h.mutable_step()->set_kept_per_block(0); });
  ExpectRefused("kept_per_block", [](auto& h) { h.mutable_step()->set_kept_per_block(4097); });
  ExpectRefused("eta_bits", [](auto& h) { h.mutable_step()->set_eta_bits(0xffffffff); });
}

// Expects that the header of round 7 of deltas with one change is refused, and names the field.
void ExpectDeltasRefused(
    absl::string_view field,
    const std::function<void(v1::RoundHeader&, v1::DeltaParameters&)>& change) {
  const Layout layout = SmallLayout();
  BuiltRound round = BuildDeltaRound(layout, RoundId(7), 1);
  ASSERT_TRUE(ParseRoundHeader(round.header_bytes(), layout).ok());
  change(round.header, *round.header.mutable_step()->mutable_deltas());
  const absl::Status status = ParseRoundHeader(round.header_bytes(), layout).status();
  ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field;
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(field)));
}

TEST(ParseRoundHeaderTest, RefusesABadStepOfDeltas) {
  ExpectDeltasRefused("inner_rate_bits: 0 of them",
                      [](auto&, auto& deltas) { deltas.clear_inner_rate_bits(); });
  ExpectDeltasRefused("inner_rate_bits: 1001 of them", [](auto&, auto& deltas) {
    for (int i = 0; i < 1000; ++i) deltas.add_inner_rate_bits(0);
  });
  ExpectDeltasRefused("inner_rate_bits: nan",
                      [](auto&, auto& deltas) { deltas.set_inner_rate_bits(0, 0x7fc00000); });
  ExpectDeltasRefused("inner_rate_bits: -",
                      [](auto&, auto& deltas) { deltas.set_inner_rate_bits(0, 0x80000000); });
  for (const uint32_t bits : {0x00000001u, 0x7fc00000u, 0xbf800000u, 0x40400000u}) {
    ExpectDeltasRefused("outer_rate_bits",
                        [bits](auto&, auto& deltas) { deltas.set_outer_rate_bits(bits); });
  }
  ExpectDeltasRefused("error_decay", [](auto&, auto& deltas) { deltas.set_error_decay(1); });
  ExpectDeltasRefused("caps: 2 for 3 tensors", [](auto&, auto& deltas) { deltas.set_caps("ab"); });
  ExpectDeltasRefused("as_dct: unused bit 3",
                      [](auto&, auto& deltas) { deltas.set_as_dct("\x09"); });
  ExpectDeltasRefused("as_dct: 0 bytes", [](auto&, auto& deltas) { deltas.clear_as_dct(); });
  ExpectDeltasRefused("step: has eta or beta",
                      [](auto& h, auto&) { h.mutable_step()->set_beta(0.5f); });
  ExpectDeltasRefused("scale_medians: 2, expected 3",
                      [](auto& h, auto&) { h.mutable_scale_medians()->RemoveLast(); });
  ExpectDeltasRefused("scale_medians: 257", [](auto& h, auto&) { h.set_scale_medians(1, 257); });
  ExpectDeltasRefused("weight: more than 2^19",
                      [](auto& h, auto&) { h.mutable_members(0)->set_weight(1 << 19); });
  ExpectRefused("scale_medians: 1, expected 0", [](auto& h) { h.add_scale_medians(1); });
}

TEST(ParseRoundHeaderTest, RefusesBadMembers) {
  ExpectRefused("name", [](auto& h) { h.mutable_members(0)->set_name("Alice"); });
  ExpectRefused("bob does not come after bob",
                [](auto& h) { h.mutable_members(0)->set_name("bob"); });
  ExpectRefused("segment 0: included: alice has weight 0",
                [](auto& h) { h.mutable_members(0)->set_weight(0); });
  ExpectRefused("bob: weight: more than 32767",
                [](auto& h) { h.mutable_members(1)->set_weight(8191); });
  ExpectRefused("weight", [](auto& h) { h.mutable_members(0)->set_weight(0xffffffff); });
  ExpectRefused("state", [](auto& h) { h.mutable_members(0)->clear_state(); });
  ExpectRefused("state",
                [](auto& h) { h.mutable_members(0)->set_state(static_cast<v1::MemberState>(99)); });
}

// A worker on probation is listed and counted nowhere.
TEST(ParseRoundHeaderTest, AllowsWeightZeroThatIsIncludedNowhere) {
  const Layout layout = SmallLayout();
  BuiltRound round = BuildRound(layout, RoundId(7), 1);
  round.header.mutable_members(1)->set_weight(0);
  round.header.mutable_members(1)->set_state(v1::MEMBER_STATE_PROBATION);
  for (auto& segment : *round.header.mutable_segments()) segment.set_included("\x01");
  EXPECT_TRUE(ParseRoundHeader(round.header_bytes(), layout).ok());
  round.header.mutable_segments(2)->set_included("\x03");
  EXPECT_EQ(ParseRoundHeader(round.header_bytes(), layout).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ParseRoundHeaderTest, AllowsVotesUpToTheLimit) {
  const Layout layout = SmallLayout();
  BuiltRound round = BuildRound(layout, RoundId(7), 1);
  round.header.mutable_members(1)->set_weight(8190);  // 4 * (1 + 8190) = 32764
  EXPECT_TRUE(ParseRoundHeader(round.header_bytes(), layout).ok());
}

TEST(ParseRoundHeaderTest, RefusesBadSegments) {
  ExpectRefused("segments: 4", [](auto& h) { *h.add_segments() = h.segments(0); });
  ExpectRefused("segments: 2", [](auto& h) { h.mutable_segments()->RemoveLast(); });
  ExpectRefused("segment 1: included: 0 bytes",
                [](auto& h) { h.mutable_segments(1)->clear_included(); });
  ExpectRefused("segment 1: included: 2 bytes",
                [](auto& h) { h.mutable_segments(1)->set_included(std::string("\x03\x00", 2)); });
  ExpectRefused("segment 2: included: unused bit 2",
                [](auto& h) { h.mutable_segments(2)->set_included("\x07"); });
  ExpectRefused("segment 1: sha256: 31 bytes",
                [](auto& h) { h.mutable_segments(1)->set_sha256(std::string(31, 'x')); });
  ExpectRefused("segment 2: sha256: 0 bytes",
                [](auto& h) { h.mutable_segments(2)->clear_sha256(); });
  ExpectRefused("segment 0: included: alice abstained",
                [](auto& h) { h.mutable_members(0)->set_abstained(true); });
  ExpectRefused("segment 0: payload_bytes",
                [](auto& h) { h.mutable_segments(0)->set_payload_bytes(0); });
  ExpectRefused("segment 0: payload_bytes",
                [](auto& h) { h.mutable_segments(0)->set_payload_bytes(uint64_t{1} << 40); });
}

TEST(ParseRoundHeaderTest, RefusesBadSlots) {
  ExpectRefused("slots: worker: alice does not come after bob",
                [](auto& h) { h.mutable_slots()->SwapElements(0, 1); });
  ExpectRefused("samples", [](auto& h) { h.mutable_slots(0)->set_samples(0); });
  ExpectRefused("samples", [](auto& h) { h.set_next_sample(3); });
  ExpectRefused("samples", [](auto& h) { h.mutable_slots(1)->set_first_sample(~uint64_t{0}); });
  ExpectRefused("worker", [](auto& h) { h.mutable_slots(1)->set_worker(""); });
}

void AddRange(uint64_t first, uint64_t samples, v1::SampleRange* range) {
  range->set_first_sample(first);
  range->set_samples(samples);
}

TEST(ParseRoundHeaderTest, RefusesBadRangesOfSamples) {
  const auto more = [](uint64_t first, uint64_t samples) {
    return [=](auto& h) {
      h.set_next_sample(uint64_t{1} << 33);
      AddRange(first, samples, h.mutable_slots(0)->add_more());
    };
  };
  ExpectRefused("slots: alice: 0 samples", more(3, 0));
  ExpectRefused("slots: alice: 2 samples from", more((uint64_t{1} << 33) - 1, 2));
  ExpectRefused("slots: alice: more than 2^32 - 1", more(0, uint64_t{1} << 32));
  const auto unread = [](uint64_t first, uint64_t samples) {
    return [=](auto& h) {
      h.set_next_sample(1000);
      AddRange(10, 5, h.add_unread());
      AddRange(first, samples, h.add_unread());
    };
  };
  ExpectRefused("unread: 15 is not after 16", unread(15, 5));
  ExpectRefused("unread: 3 is not after 16", unread(3, 5));
  ExpectRefused("unread: 0 samples", unread(16, 0));
  ExpectRefused("unread: 985 samples from 16", unread(16, 985));
}

TEST(ParseRoundHeaderTest, TakesRangesOfSamples) {
  const Layout layout = SmallLayout();
  testing::BuiltRound round = BuildRound(layout, RoundId(7), 1);
  round.header.set_next_sample(1000);
  AddRange(990, 10, round.header.mutable_slots(0)->add_more());
  AddRange(10, 5, round.header.add_unread());
  AddRange(16, 984, round.header.add_unread());
  EXPECT_TRUE(ParseRoundHeader(round.header_bytes(), layout).ok());
}

TEST(ParseRoundHeaderTest, FlippedAndTruncatedIsReadOrRefused) {
  const Layout layout = SmallLayout();
  const std::string bytes = BuildRound(layout, RoundId(7), 1).header_bytes();
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      const auto header = ParseRoundHeader(flipped, layout);
      if (!header.ok()) {
        ASSERT_EQ(header.status().code(), absl::StatusCode::kInvalidArgument);
      }
    }
    const auto header = ParseRoundHeader(bytes.substr(0, i), layout);
    if (!header.ok()) {
      ASSERT_EQ(header.status().code(), absl::StatusCode::kInvalidArgument);
    }
  }
}

std::vector<SharedBytes> Shared(const BuiltRound& round) {
  std::vector<SharedBytes> payloads;
  for (const auto& payload : round.payloads) {
    payloads.push_back(std::make_shared<const std::string>(payload));
  }
  return payloads;
}

TEST(MakeCommittedRoundTest, KnowsItsHashAndWhoIsIncluded) {
  const Layout layout = SmallLayout();
  BuiltRound built = BuildRound(layout, RoundId(7), 1);
  built.header.mutable_segments(1)->set_included("\x02");
  const auto round = MakeCommittedRound(built.header_bytes(), Shared(built), layout);
  ASSERT_TRUE(round.ok()) << round.status();
  EXPECT_EQ(round->round(), RoundId(7));
  EXPECT_EQ(round->hash, Xxh3(built.header_bytes()));
  EXPECT_EQ(round->MemberIndex("alice"), 0);
  EXPECT_EQ(round->MemberIndex("bob"), 1);
  EXPECT_EQ(round->MemberIndex("aa"), -1);
  EXPECT_EQ(round->MemberIndex("carol"), -1);
  EXPECT_TRUE(round->Included(0, SegmentId(0)));
  EXPECT_FALSE(round->Included(0, SegmentId(1)));
  EXPECT_TRUE(round->Included(1, SegmentId(1)));
}

TEST(MakeCommittedRoundTest, RefusesEveryPayloadThatIsNotTheListedOne) {
  const Layout layout = SmallLayout();
  const BuiltRound built = BuildRound(layout, RoundId(7), 1);
  const auto expect_refused = [&](std::vector<SharedBytes> payloads, absl::string_view message) {
    const absl::Status status =
        MakeCommittedRound(built.header_bytes(), std::move(payloads), layout).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(message)));
  };
  std::vector<SharedBytes> payloads = Shared(built);
  payloads.pop_back();
  expect_refused(payloads, "round 7: 2 payloads for 3");
  payloads = Shared(built);
  payloads[1] = nullptr;
  expect_refused(payloads, "round 7: segment 1: the payload is missing");
  payloads = Shared(built);
  payloads[2] = std::make_shared<const std::string>(built.payloads[2] + "x");
  expect_refused(payloads, "round 7: segment 2: the payload has");
  for (size_t i = 0; i < built.payloads[0].size(); ++i) {
    std::string flipped = built.payloads[0];
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    payloads = Shared(built);
    payloads[0] = std::make_shared<const std::string>(flipped);
    expect_refused(payloads, "round 7: segment 0: the payload's checksum");
  }
}

}  // namespace
}  // namespace distro
