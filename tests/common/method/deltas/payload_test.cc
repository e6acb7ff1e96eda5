#include "common/method/deltas/payload.h"

#include <algorithm>
#include <functional>
#include <iostream>
#include <type_traits>

#include "bench/wire/entropy.h"
#include "bench/wire/random_deltas.h"
#include "common/method/deltas/gap_encoder.h"
#include "common/method/deltas/gap_format.h"
#include "common/method/deltas/scale.h"
#include "common/method/deltas/update_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/combined_deltas.h"
#include "tests/testing/payload_damage.h"
#include "tests/testing/plain_deltas.h"

namespace distro {
namespace {

using bench::RandomDelta;
using bench::RandomDeltaResult;
using ::distro::testing::DecodeDeltaUpdate;
using ::distro::testing::ExpectFlipsAreCaught;
using ::distro::testing::ExpectTruncationsAreRefused;
using ::distro::testing::FixChecksum;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

constexpr PayloadIdentity kIdentity = {
    .layout_hash = 0x0123456789abcdef, .round = RoundId(42), .segment = SegmentId(7)};

PayloadExpectation Expect(uint32_t blocks, int k) {
  return {.layout_hash = kIdentity.layout_hash,
          .round = kIdentity.round,
          .segment = kIdentity.segment,
          .blocks = blocks,
          .k = k};
}

std::vector<uint8_t> Caps(uint32_t blocks, uint8_t cap = kScaleCodes - 1) {
  return std::vector<uint8_t>(blocks, cap);
}

absl::Status Validate(absl::string_view bytes, uint32_t blocks, int k) {
  return ValidateDeltaUpdate(bytes, Expect(blocks, k), Caps(blocks));
}

absl::StatusOr<DeltaUpdate> Decode(absl::string_view bytes, uint32_t blocks, int k) {
  return DecodeDeltaUpdate(bytes, Expect(blocks, k));
}

TEST(DeltaPayloadTest, UpdatesRoundTripForEveryK) {
  for (int k : {1, 2, 8, 9, 32, 500, 4096}) {
    const uint32_t blocks = k <= 32 ? 300 : 3;
    const DeltaUpdate update = RandomDelta(k, blocks, 3, {.hot = 0.2});
    const std::string bytes = EncodeDeltaUpdate(kIdentity, update);
    EXPECT_LE(bytes.size(), MaxDeltaUpdateBytes(blocks, k));
    EXPECT_EQ(Validate(bytes, blocks, k), absl::OkStatus());
    const absl::StatusOr<DeltaUpdate> decoded = Decode(bytes, blocks, k);
    ASSERT_EQ(decoded.status(), absl::OkStatus());
    EXPECT_TRUE(*decoded == update) << k;
  }
}

TEST(DeltaPayloadTest, ResultsRoundTripWithAnyNumberOfThreads) {
  constexpr uint32_t kBlocks = 33 * kGroupBlocks + 7;  // several parts, the last group short
  const DeltaResult result = RandomDeltaResult(3, 5, kBlocks, 8, {.hot = 0.3});
  const std::string bytes = EncodeDeltaResult(kIdentity, result);
  EXPECT_LE(bytes.size(), MaxDeltaResultBytes(kBlocks, 15));
  for (int threads : {1, 2, 3, 64}) {
    const absl::StatusOr<DeltaResult> decoded =
        DecodeDeltaResult(bytes, Expect(kBlocks, 0), threads);
    ASSERT_EQ(decoded.status(), absl::OkStatus());
    EXPECT_TRUE(*decoded == result) << threads;
  }
}

TEST(DeltaPayloadTest, EmptySegmentsAndEmptyBlocksRoundTrip) {
  EXPECT_TRUE(
      DecodeDeltaResult(EncodeDeltaResult(kIdentity, DeltaResult()), Expect(0, 0)).value() ==
      DeltaResult());
  const DeltaUpdate empty = {
      .k = 2, .positions = {0, 0, 0, 0}, .signs = {0, 0, 0, 0}, .codes = {0, 0}};
  EXPECT_TRUE(Decode(EncodeDeltaUpdate(kIdentity, empty), 2, 2).value() == empty);
}

TEST(DeltaPayloadTest, ScalesOfBothEndsRoundTrip) {
  DeltaResult result;
  for (const int code : {255, 0, 255, 255, 0, 0, 128}) {
    result.positions.push_back(4095);
    result.signs.push_back(-1);
    result.levels.push_back(code == 0 ? kLevels - 1 : 0);
    result.codes.push_back(static_cast<uint8_t>(code));
    result.offsets.push_back(static_cast<uint32_t>(result.positions.size()));
  }
  const std::string bytes = EncodeDeltaResult(kIdentity, result);
  EXPECT_TRUE(DecodeDeltaResult(bytes, Expect(7, 0)).value() == result);
}

TEST(DeltaPayloadTest, RefusesCodeAboveCap) {
  DeltaUpdate update = RandomDelta(4, 10, 1);
  update.codes[6] = 201;
  const std::string bytes = EncodeDeltaUpdate(kIdentity, update);
  EXPECT_EQ(ValidateDeltaUpdate(bytes, Expect(10, 4), Caps(10, 201)), absl::OkStatus());
  EXPECT_EQ(ValidateDeltaUpdate(bytes, Expect(10, 4), Caps(10, 200)),
            absl::InvalidArgumentError("block 6: scale code 201 is above the cap 200"));
}

TEST(DeltaPayloadTest, NamesBothValuesOfMismatch) {
  const std::string bytes = EncodeDeltaUpdate(kIdentity, RandomDelta(4, 10, 1));
  struct Case {
    std::function<void(PayloadExpectation*)> change;
    std::string message;
  };
  const std::vector<Case> cases = {
      {[](auto* e) { e->round = RoundId(43); }, "payload: round 42, expected 43"},
      {[](auto* e) { e->blocks = 11; }, "payload: blocks 10, expected 11"},
      {[](auto* e) { e->k = 5; }, "payload: k 4, expected 5"},
      {[](auto* e) { e->k = 0; }, "payload: expected k 0 is outside 1..4096"},
      {[](auto* e) { e->k = 4097; }, "payload: expected k 4097 is outside 1..4096"}};
  for (const Case& one : cases) {
    PayloadExpectation expected = Expect(10, 4);
    one.change(&expected);
    EXPECT_EQ(ValidateDeltaUpdate(bytes, expected, Caps(11)),
              absl::InvalidArgumentError(one.message));
  }
  EXPECT_EQ(DecodeDeltaResult(bytes, Expect(10, 0)).status(),
            absl::InvalidArgumentError("payload: kind 4, expected 5"));
  EXPECT_THAT(std::string(Validate(bytes + std::string(100000, 'x'), 10, 4).message()),
              MatchesRegex("payload: 100[0-9]+ bytes, at most [0-9]+ are possible"));
}

TEST(DeltaPayloadTest, RefusesTruncations) {
  for (int k : {1, 4, 32}) {
    ExpectTruncationsAreRefused(EncodeDeltaUpdate(kIdentity, RandomDelta(k, 20, 1)),
                                [&](absl::string_view bytes) { return Validate(bytes, 20, k); });
  }
  ExpectTruncationsAreRefused(
      EncodeDeltaResult(kIdentity, RandomDeltaResult(3, 4, 20, 1)),
      [](absl::string_view bytes) { return DecodeDeltaResult(bytes, Expect(20, 0)).status(); });
}

TEST(DeltaPayloadTest, FlippedBytesAreCaught) {
  for (int k : {1, 8, 32}) {
    ExpectFlipsAreCaught(
        EncodeDeltaUpdate(kIdentity, RandomDelta(k, 20, 1)),
        [&](const std::string& bytes) { return Decode(bytes, 20, k); },
        [](const DeltaUpdate& update) { return EncodeDeltaUpdate(kIdentity, update); });
  }
  ExpectFlipsAreCaught(
      EncodeDeltaResult(kIdentity, RandomDeltaResult(3, 4, 20, 1)),
      [](const std::string& bytes) { return DecodeDeltaResult(bytes, Expect(20, 0)); },
      [](const DeltaResult& result) { return EncodeDeltaResult(kIdentity, result); });
}

// Groups are read several at a time. Some blocks have no entries, and one group has none.
TEST(DeltaPayloadTest, GroupsReadTogetherAreThoseReadAlone) {
  constexpr uint32_t kBlocks = 6 * kGroupBlocks + 9;
  for (const int k : {3, 100}) {
    DeltaUpdate update = RandomDelta(k, kBlocks, 1, {.hot = 0.5});
    const auto clear = [&](uint32_t block) {
      std::fill_n(update.positions.begin() + block * k, k, uint16_t{0});
      std::fill_n(update.signs.begin() + block * k, k, int8_t{0});
      update.codes[block] = 0;
    };
    for (uint32_t block = kGroupBlocks; block < 2 * kGroupBlocks; ++block) clear(block);
    for (uint32_t block = 2 * kGroupBlocks - 1; block < kBlocks; block += 50) clear(block);
    const std::string bytes = EncodeDeltaUpdate(kIdentity, update);
    EXPECT_TRUE(Decode(bytes, kBlocks, k).value() == update);

    const auto read = [&](const std::string& payload, size_t at_once) {
      absl::StatusOr<DeltaUpdateReader> reader =
          DeltaUpdateReader::Create(payload, Expect(kBlocks, k));
      absl::Status status = reader.status();
      std::vector<SentGroup> groups(GroupsOf(kBlocks));
      for (size_t g = 0; status.ok() && g < groups.size(); g += at_once)
        status = reader->NextGroups(absl::MakeSpan(groups).subspan(g, at_once));
      return status;
    };
    EXPECT_EQ(read(bytes, 1), absl::OkStatus());
    EXPECT_EQ(read(bytes, 7), absl::OkStatus());
    int refused = 0;
    for (size_t i = 40; i < bytes.size(); i += bytes.size() / 100) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ 1 << i % 8);
      damaged = FixChecksum(std::move(damaged));
      const absl::Status alone = read(damaged, 1);
      EXPECT_EQ(read(damaged, 7), alone) << "byte " << i;
      EXPECT_TRUE(alone.ok() || absl::IsInvalidArgument(alone)) << alone;
      refused += alone.ok() ? 0 : 1;
    }
    EXPECT_GT(refused, 10);
  }
}

// The bits of a group, written by hand.
struct GroupBits {
  using Codes = internal::GapCodes<DeltaFormat>;
  template <typename Kind>
  void Add(uint32_t number) {
    writes.push_back([number](const Codes& codes, BitWriter* writer) {
      const internal::CodedNumber coded = codes.Coded<Kind>(number);
      writer->Write(coded.bits, coded.length);
    });
  }
  void AddRun(uint32_t blocks, uint32_t count) {
    Add<Repeats>(blocks - 1);
    Add<Counts>(count);
  }
  // Blocks of one entry each, behind their run. `first`: of the group, which has `all` entries.
  void AddBlocks(uint32_t blocks, bool first, uint32_t all) {
    for (uint32_t b = 0; b < blocks; ++b) {
      Add<Scales>(2);
      if (first && b == 0) Add<Zeros>(all);
      Add<Gaps>(5);
      writes.push_back([](const Codes&, BitWriter* writer) { writer->Write(0, 1); });  // the sign
    }
  }

  std::vector<std::function<void(const Codes&, BitWriter*)>> writes;
};

// An update of as many such groups, with tables of all symbols, those of gaps if `gaps`.
std::string UpdateOf(const GroupBits& group, uint32_t groups, bool gaps) {
  GapModel<DeltaFormat> model;
  model.ForEach([&]<typename Kind>() {
    std::ranges::fill(model.of<Kind>(), gaps || !std::is_same_v<Kind, Gaps> ? 1 : 0);
  });
  const GapCodeLengths<DeltaFormat> lengths = LengthsOf<DeltaFormat>(model);
  const internal::GapCodes<DeltaFormat> codes(lengths);
  std::string bits;
  BitWriter writer(&bits);
  for (const auto& write : group.writes) write(codes, &writer);
  writer.AlignToByte();
  const auto size = static_cast<uint32_t>(bits.size());
  std::string body = EncodeTables<DeltaFormat>(lengths);
  for (uint32_t g = 0; g < groups; ++g)
    body.append(reinterpret_cast<const char*>(&size), sizeof(size));
  for (uint32_t g = 0; g < groups; ++g) body.append(bits);
  return FinishPayload(
      StartPayload(kIdentity, PayloadKind::kDeltaUpdate, 1, groups * kGroupBlocks).append(body));
}

// Whether groups are read alone or together.
TEST(DeltaPayloadTest, RefusesGroupsThatNoEncoderMakes) {
  struct Case {
    std::string fault;
    GroupBits group;
    bool gaps = true;
  };
  std::vector<Case> cases(5);
  cases[0].fault = "256 blocks";
  cases[0].group.AddRun(1, 0);
  cases[0].group.AddRun(256, 1);
  cases[0].group.AddBlocks(256, true, 256);
  cases[1].fault = "gaps";
  cases[1].group.AddRun(1, 1);
  cases[1].group.Add<Scales>(2);
  cases[1].group.Add<Zeros>(1);
  cases[1].gaps = false;
  cases[2].fault = "two runs";
  for (const uint32_t blocks : {1u, 255u}) {
    cases[2].group.AddRun(blocks, 1);
    cases[2].group.AddBlocks(blocks, blocks == 1, 256);
  }
  cases[3].fault = "two runs";
  cases[3].group.AddRun(1, 0);
  cases[3].group.AddRun(255, 0);
  cases[4].fault = "entries";
  cases[4].group.AddRun(256, 2);
  for (const Case& one : cases) {
    for (const uint32_t groups : {1u, 4u, 5u}) {
      const std::string bytes = UpdateOf(one.group, groups, one.gaps);
      const absl::Status status = Validate(bytes, groups * kGroupBlocks, 1);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << one.fault;
      EXPECT_THAT(std::string(status.message()), HasSubstr(one.fault));
    }
  }
}

// What several threads have made is what one makes.
TEST(DeltaPayloadTest, EncodersOfRangesWriteOneBody) {
  constexpr uint32_t kBlocks = 4 * kGroupBlocks + 100;
  const DeltaResult result = RandomDeltaResult(3, 5, kBlocks, 8, {.hot = 0.3});
  const std::string expected = EncodeDeltaResult(kIdentity, result);
  for (const int threads : {1, 2, 3}) {
    std::vector<DeltaGapEncoder> encoders;
    for (const uint32_t first : {0u, 2u, 4u}) {
      const uint32_t begin = first * kGroupBlocks;
      const uint32_t end = std::min(begin + 2 * kGroupBlocks, kBlocks);
      DeltaGapEncoder& encoder = encoders.emplace_back(end - begin);
      for (uint32_t b = begin; b < end; ++b) {
        const uint32_t at = result.offsets[b];
        encoder.AddBlock(result.offsets[b + 1] - at, result.codes[b], &result.positions[at],
                         &result.signs[at], &result.levels[at]);
      }
    }
    EXPECT_EQ(EncodeDeltaResult(kIdentity, absl::MakeSpan(encoders), threads), expected) << threads;
  }
}

// Results in an update's place: a count or level that an update cannot have.
TEST(DeltaPayloadTest, RefusesResultsThatAreNoUpdate) {
  const auto as_update = [](const DeltaResult& result) {
    std::string bytes = EncodeDeltaResult(kIdentity, result);
    bytes[5] = static_cast<char>(PayloadKind::kDeltaUpdate);
    bytes[6] = 2;
    return Validate(FixChecksum(bytes), 1, 2);
  };
  DeltaResult result = {
      .offsets = {0, 2}, .positions = {1, 2}, .signs = {1, -1}, .levels = {0, 0}, .codes = {9}};
  EXPECT_EQ(as_update(result), absl::OkStatus());
  result.levels[1] = 3;
  EXPECT_EQ(as_update(result), absl::InvalidArgumentError("block 0: level 3, an update has 0"));
  result = {.offsets = {0, 1}, .positions = {1}, .signs = {1}, .levels = {0}, .codes = {9}};
  EXPECT_EQ(as_update(result),
            absl::InvalidArgumentError("block 0: 1 entries, an update has 0 or 2"));
}

TEST(DeltaPayloadTest, CombinesAsWholeUpdatesDo) {
  constexpr uint32_t kBlocks = 3 * kGroupBlocks + 5;
  const std::vector<BlockExtent> extents(kBlocks, {.rows = 50, .cols = 60, .last_cols = 7});
  constexpr int kWeights[] = {1, 2, 1, 3};
  std::vector<DeltaUpdate> updates;
  std::vector<std::string> bytes;
  for (int w = 0; w < 4; ++w) {
    updates.push_back(RandomDelta(16, kBlocks, w, {.hot = 0.5}));
    bytes.push_back(EncodeDeltaUpdate(kIdentity, updates.back()));
  }
  std::vector<WeightedDelta> wholes;
  std::vector<WeightedDeltaPayload> payloads;
  for (int w = 0; w < 4; ++w) {
    wholes.push_back({.update = &updates[w], .weight = kWeights[w]});
    payloads.push_back({.bytes = bytes[w], .weight = kWeights[w]});
  }
  for (const Divisor divisor : {Divisor::kSenders, Divisor::kAll}) {
    const MeanRule rule = {.divisor = divisor, .weights = 7, .least_senders = LeastSenders(7, 64)};
    const DeltaMeans expected = CombineDeltas(wholes, extents, rule);
    EXPECT_TRUE(testing::CombinedMeans(payloads, Expect(kBlocks, 16), extents, rule).value() ==
                expected);
    // Groups one by one.
    DeltaMeans together;
    for (uint32_t group = 0; group < 4; ++group) {
      const DeltaMeans part = testing::CombinedMeans(payloads, Expect(kBlocks, 16), extents, rule,
                                                     {.first = group, .count = 1})
                                  .value();
      const uint32_t first = together.offsets.back();
      for (size_t b = 1; b < part.offsets.size(); ++b)
        together.offsets.push_back(first + part.offsets[b]);
      together.positions.insert(together.positions.end(), part.positions.begin(),
                                part.positions.end());
      together.values.insert(together.values.end(), part.values.begin(), part.values.end());
    }
    EXPECT_TRUE(together == expected);
  }
}

TEST(DeltaPayloadTest, CombiningRefusesWeightsThatDoNotFit) {
  const std::string bytes = EncodeDeltaUpdate(kIdentity, RandomDelta(4, 5, 1));
  const std::vector<BlockExtent> extents(5);
  const auto combine = [&](int weight, int64_t expected) {
    const WeightedDeltaPayload payload = {.bytes = bytes, .weight = weight};
    return testing::CombinedMeans({&payload, 1}, Expect(5, 4), extents,
                                  {.divisor = Divisor::kSenders, .weights = expected})
        .status();
  };
  EXPECT_EQ(combine(1 << 19, 1 << 19), absl::OkStatus());
  EXPECT_EQ(combine(0, 0), absl::InvalidArgumentError("weight 0 is below 1"));
  EXPECT_EQ(combine(2, 3),
            absl::InvalidArgumentError("weights sum to 2, expected 3 and at most 524288"));
  EXPECT_EQ(
      combine((1 << 19) + 1, (1 << 19) + 1),
      absl::InvalidArgumentError("weights sum to 524289, expected 524289 and at most 524288"));
  const WeightedDeltaPayload damaged = {.bytes = absl::string_view(bytes).substr(1), .weight = 1};
  const absl::StatusOr<DeltaMeans> means =
      testing::CombinedMeans({&damaged, 1}, Expect(5, 4), extents, {.weights = 1});
  EXPECT_THAT(std::string(means.status().message()), StartsWith("payload 0: payload: magic "));
}

void ExpectNearEntropy(const std::string& what, const DeltaResult& deltas) {
  std::string body;
  EncodeDeltaGaps(deltas, &body);
  const double bits = 8.0 * static_cast<double>(body.size());
  const double ratio = bits / bench::EntropyBits(deltas);
  const auto entries = static_cast<double>(deltas.positions.size());
  std::cout << what << ": " << entries / static_cast<double>(deltas.blocks())
            << " entries a block, " << bits / entries << " bits an entry, " << ratio
            << " of the empirical entropy\n";
  EXPECT_LE(ratio, 1.03) << what;
}

TEST(DeltaPayloadTest, BodiesAreNearTheirEntropy) {
  struct Case {
    int workers, k;
    bench::Agreement agreement;
  };
  for (const Case& one : std::vector<Case>{{1, 1, {}},
                                           {1, 4, {}},
                                           {1, 8, {}},
                                           {1, 32, {}},
                                           {8, 8, {}},
                                           {8, 32, {.hot = 0.3, .hot_positions = 64}},
                                           {32, 8, {.hot = 0.5, .positive = 0.8}},
                                           {32, 32, {}}}) {
    const int blocks = std::max(1024, 65536 / (one.workers * one.k));
    const std::string name =
        absl::StrCat("W=", one.workers, " K=", one.k, " hot=", one.agreement.hot);
    ExpectNearEntropy(name, one.workers == 1
                                ? ResultOf(RandomDelta(one.k, blocks, 7, one.agreement))
                                : RandomDeltaResult(one.workers, one.k, blocks, 7, one.agreement));
  }
}

}  // namespace
}  // namespace distro
