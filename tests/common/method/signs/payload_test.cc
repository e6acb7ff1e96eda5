#include "common/method/signs/payload.h"

#include <functional>

#include "bench/wire/random_updates.h"
#include "common/method/signs/update_reader.h"
#include "common/model/layout/layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/payload_damage.h"
#include "tests/testing/plain_updates.h"

namespace distro {
namespace {

using bench::RandomUpdate;
using bench::RandomVotes;
using ::distro::testing::DecodeSignUpdate;
using ::distro::testing::ExpectFlipsAreCaught;
using ::distro::testing::ExpectTruncationsAreRefused;
using ::distro::testing::FixChecksum;
using ::distro::testing::WithByte;
using ::testing::HasSubstr;

constexpr PayloadIdentity kIdentity = {
    .layout_hash = 0x0123456789abcdef, .round = RoundId(42), .segment = SegmentId(7)};

PayloadExpectation Expect(uint32_t blocks, int k) {
  return {.layout_hash = kIdentity.layout_hash,
          .round = kIdentity.round,
          .segment = kIdentity.segment,
          .blocks = blocks,
          .k = k};
}

TEST(PayloadTest, UpdatesRoundTripForEveryK) {
  for (int k : {1, 2, 3, 4, 5, 6, 7, 8, 9, 32, 128, 4096}) {
    const SignUpdate update = RandomUpdate(k, k == 4096 ? 3 : 300, k);
    const auto blocks = static_cast<uint32_t>(update.blocks());
    const std::string bytes = EncodeSignUpdate(kIdentity, update);
    EXPECT_EQ(ValidateSignUpdate(bytes, Expect(blocks, k)), absl::OkStatus());
    EXPECT_LE(bytes.size(), MaxSignUpdateBytes(blocks, k));
    const absl::StatusOr<SignUpdate> decoded = DecodeSignUpdate(bytes, Expect(blocks, k));
    ASSERT_EQ(decoded.status(), absl::OkStatus());
    EXPECT_TRUE(*decoded == update) << k;
    EXPECT_EQ(EncodeSignUpdate(kIdentity, *decoded), bytes);
  }
}

TEST(PayloadTest, VotesRoundTrip) {
  const Votes votes = RandomVotes(8, 4, 600, 1, {.hot = 0.5});
  const std::string bytes = EncodeVotes(kIdentity, votes);
  EXPECT_LE(bytes.size(), MaxVotesBytes(600, 32));
  const absl::StatusOr<Votes> decoded = DecodeVotes(bytes, Expect(600, 0));
  ASSERT_EQ(decoded.status(), absl::OkStatus());
  EXPECT_TRUE(*decoded == votes);
  EXPECT_EQ(EncodeVotes(kIdentity, *decoded), bytes);
}

TEST(PayloadTest, EmptySegmentsRoundTrip) {
  const Votes none;
  EXPECT_EQ(DecodeVotes(EncodeVotes(kIdentity, none), Expect(0, 0)).value(), none);
  const SignUpdate update{.k = 4, .positions = {}, .signs = {}};
  EXPECT_EQ(DecodeSignUpdate(EncodeSignUpdate(kIdentity, update), Expect(0, 4)).value(), update);
}

TEST(PayloadTest, NamesBothValuesOfMismatch) {
  const std::string bytes = EncodeSignUpdate(kIdentity, RandomUpdate(4, 10, 1));
  struct Case {
    std::function<void(PayloadExpectation*)> change;
    std::string message;
  };
  const std::vector<Case> cases = {
      {[](auto* e) { e->layout_hash = 1; },
       "payload: layout hash 0123456789abcdef, expected 0000000000000001"},
      {[](auto* e) { e->round = RoundId(43); }, "payload: round 42, expected 43"},
      {[](auto* e) { e->segment = SegmentId(8); }, "payload: segment 7, expected 8"},
      {[](auto* e) { e->blocks = 11; }, "payload: blocks 10, expected 11"},
      {[](auto* e) { e->k = 5; }, "payload: k 4, expected 5"},
      {[](auto* e) { e->k = 9; }, "payload: kind 1, expected 2"},
      {[](auto* e) { e->k = 0; }, "payload: expected k 0 is outside 1..4096"},
      {[](auto* e) { e->blocks = 9; }, "payload: 108 bytes, at most 102 are possible"}};
  for (const Case& one : cases) {
    PayloadExpectation expected = Expect(10, 4);
    one.change(&expected);
    EXPECT_EQ(ValidateSignUpdate(bytes, expected), absl::InvalidArgumentError(one.message));
    EXPECT_EQ(DecodeSignUpdate(bytes, expected).status(), absl::InvalidArgumentError(one.message));
  }
  EXPECT_EQ(DecodeVotes(bytes, Expect(10, 0)).status(),
            absl::InvalidArgumentError("payload: kind 1, expected 3"));
}

TEST(PayloadTest, DamageIsNamed) {
  const std::string bytes = EncodeSignUpdate(kIdentity, RandomUpdate(9, 10, 1));
  const auto message = [](const std::string& damaged) {
    return std::string(ValidateSignUpdate(damaged, Expect(10, 9)).message());
  };
  EXPECT_THAT(message(WithByte(bytes, 0, 'X')), HasSubstr("magic"));
  EXPECT_THAT(message(WithByte(bytes, 4, 2)), HasSubstr("format version 2, expected 1"));
  EXPECT_THAT(message(WithByte(bytes, 60, bytes[60] ^ 1)), HasSubstr("checksum"));
  EXPECT_THAT(message(bytes + "x"), HasSubstr("bytes after the checksum: 1, expected 0"));
  EXPECT_THAT(message(WithByte(bytes, 39, 0x80)), HasSubstr("payload: body: needs 92233720368547"));
}

TEST(PayloadTest, RefusesTruncations) {
  for (int k : {4, 9}) {
    ExpectTruncationsAreRefused(
        EncodeSignUpdate(kIdentity, RandomUpdate(k, 20, 1)),
        [&](absl::string_view bytes) { return ValidateSignUpdate(bytes, Expect(20, k)); });
  }
  ExpectTruncationsAreRefused(
      EncodeVotes(kIdentity, RandomVotes(3, 4, 20, 1)),
      [](absl::string_view bytes) { return DecodeVotes(bytes, Expect(20, 0)).status(); });
}

TEST(PayloadTest, FlippedBytesAreCaught) {
  for (int k : {3, 4, 8, 9}) {
    ExpectFlipsAreCaught(
        EncodeSignUpdate(kIdentity, RandomUpdate(k, 20, 1)),
        [&](const std::string& bytes) { return DecodeSignUpdate(bytes, Expect(20, k)); },
        [](const SignUpdate& update) { return EncodeSignUpdate(kIdentity, update); });
  }
  ExpectFlipsAreCaught(
      EncodeVotes(kIdentity, RandomVotes(3, 4, 20, 1)),
      [](const std::string& bytes) { return DecodeVotes(bytes, Expect(20, 0)); },
      [](const Votes& votes) { return EncodeVotes(kIdentity, votes); });
}

// Votes in an update's place: a count or value that an update cannot have.
TEST(PayloadTest, RefusesVotesThatAreNoUpdate) {
  const auto as_update = [](const Votes& votes) {
    std::string bytes = EncodeVotes(kIdentity, votes);
    bytes[5] = static_cast<char>(PayloadKind::kSignGaps);
    bytes[6] = 9;
    return ValidateSignUpdate(FixChecksum(bytes), Expect(1, 9));
  };
  Votes votes = {.offsets = {0, 9},
                 .positions = {1, 2, 3, 4, 5, 6, 7, 8, 9},
                 .values = {1, 1, 1, 1, -1, 1, 1, 1, 1}};
  EXPECT_EQ(as_update(votes), absl::OkStatus());
  votes.values[4] = 2;
  EXPECT_EQ(as_update(votes),
            absl::InvalidArgumentError("block 0: value 2, an update has 1 or -1"));
  votes = {.offsets = {0, 2}, .positions = {1, 2}, .values = {1, 1}};
  EXPECT_EQ(as_update(votes),
            absl::InvalidArgumentError("block 0: 2 entries, an update has 0 or 9"));
}

// The 1.2 B Llama of the report.
Layout ReportLayout() {
  std::vector<TensorSpec> tensors = {
      {"embed", {32000, 2048}}, {"head", {32000, 2048}}, {"norm", {2048}}};
  for (int i = 0; i < 16; ++i) {
    const std::string layer = "layer" + std::to_string(i);
    for (const char* name : {"q", "k", "v", "o"}) tensors.push_back({layer + name, {2048, 2048}});
    for (const char* name : {"gate", "up"}) tensors.push_back({layer + name, {8192, 2048}});
    tensors.push_back({layer + "down", {2048, 8192}});
    for (const char* name : {"norm1", "norm2"}) tensors.push_back({layer + name, {2048}});
  }
  return *Layout::Create(*Manifest::Create(std::move(tensors)), kDefaultSegmentBlocks);
}

TEST(PayloadTest, ReportModelUploadsSixBytesABlock) {
  const Layout layout = ReportLayout();
  uint64_t bytes = 0;
  for (uint32_t segment = 0; segment < layout.segments(); ++segment) {
    const auto blocks = static_cast<uint64_t>(layout.SegmentBlocks(SegmentId(segment)));
    EXPECT_EQ(SignRecordUpdateBytes(blocks, 4), 6 * blocks + kPayloadFramingBytes);
    bytes += SignRecordUpdateBytes(blocks, 4);
  }
  const uint64_t records = 6 * static_cast<uint64_t>(layout.blocks());
  EXPECT_EQ(records, 1765062u);  // 1.77 MB
  EXPECT_LT(static_cast<double>(bytes - records), 0.01 * static_cast<double>(records));
}

TEST(PayloadTest, RecordPayloadsHaveTheSizeThatIsPredicted) {
  for (int k = 1; k <= 8; ++k) {
    EXPECT_EQ(EncodeSignUpdate(kIdentity, RandomUpdate(k, 77, 1)).size(),
              SignRecordUpdateBytes(77, k));
  }
}

}  // namespace
}  // namespace distro
