// Updates and results of runs with K = 4096.
#include <algorithm>
#include <iostream>
#include <map>

#include "bench/wire/entropy.h"
#include "bench/wire/random_deltas.h"
#include "common/base/bitmap.h"
#include "common/base/bytes.h"
#include "common/method/codec/gap_model.h"
#include "common/method/codec/prefix_code.h"
#include "common/method/deltas/dense_result.h"
#include "common/method/deltas/dense_update.h"
#include "common/method/deltas/payload.h"
#include "common/method/deltas/scale.h"
#include "gtest/gtest.h"
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
using ::distro::testing::WithByte;

constexpr int kAll = kBlockElements;
constexpr PayloadIdentity kIdentity = {
    .layout_hash = 0x0123456789abcdef, .round = RoundId(42), .segment = SegmentId(7)};

PayloadExpectation Expect(uint32_t blocks) {
  return {.layout_hash = kIdentity.layout_hash,
          .round = kIdentity.round,
          .segment = kIdentity.segment,
          .blocks = blocks,
          .k = kAll};
}

absl::Status Validate(absl::string_view bytes, uint32_t blocks, uint8_t cap = kScaleCodes - 1) {
  return ValidateDeltaUpdate(bytes, Expect(blocks), std::vector<uint8_t>(blocks, cap));
}

std::string EncodeResult(const DeltaResult& result) {
  return EncodeDenseDeltaResult(kIdentity, DenseOf(result));
}

absl::StatusOr<DeltaResult> DecodeResult(absl::string_view bytes, uint32_t blocks) {
  return DecodeDeltaResult(bytes, Expect(blocks));
}

// Blocks 0 and 2 of three are empty.
DeltaUpdate SomeEmpty() {
  DeltaUpdate update = RandomDelta(kAll, 3, 5);
  for (const int block : {0, 2}) {
    std::fill_n(update.positions.begin() + block * kAll, kAll, uint16_t{0});
    std::fill_n(update.signs.begin() + block * kAll, kAll, int8_t{0});
    update.codes[block] = 0;
  }
  return update;
}

// The grammar of docs/payload_format.md, bit by bit.
std::string PlainUpdateBody(const DeltaUpdate& update) {
  std::string body;
  std::vector<bool> filled, signs;
  for (int64_t block = 0; block < update.blocks(); ++block) filled.push_back(!update.empty(block));
  for (const int8_t sign : update.signs) signs.push_back(sign < 0);
  body += ToBitmap(filled);
  for (const uint8_t code : update.codes) body += static_cast<char>(code);
  return body + ToBitmap(signs);
}

TEST(DensePayloadTest, UpdateFollowsTheGrammar) {
  for (const DeltaUpdate& update : {RandomDelta(kAll, 9, 3), SomeEmpty()}) {
    std::string body;
    AppendDenseUpdate(update, &body);
    EXPECT_EQ(body, PlainUpdateBody(update));
    EXPECT_EQ(body.size(), DenseUpdateBytes(update.blocks()));
  }
}

TEST(DensePayloadTest, UpdatesRoundTrip) {
  for (const DeltaUpdate& update : {RandomDelta(kAll, 203, 3), SomeEmpty()}) {
    const auto blocks = static_cast<uint32_t>(update.blocks());
    const std::string bytes = EncodeDeltaUpdate(kIdentity, update);
    EXPECT_EQ(bytes.size(), MaxDeltaUpdateBytes(blocks, kAll));
    EXPECT_EQ(Validate(bytes, blocks), absl::OkStatus());
    const absl::StatusOr<DeltaUpdate> decoded = DecodeDeltaUpdate(bytes, Expect(blocks));
    ASSERT_EQ(decoded.status(), absl::OkStatus());
    EXPECT_TRUE(*decoded == update);
  }
}

// The grammar again: every number bit by bit. Of at most kGroupBlocks blocks, none empty.
std::string PlainResultBody(const DeltaResult& result) {
  std::vector<std::vector<uint32_t>> blocks(result.blocks());
  std::vector<uint64_t> counts(17 * 17);
  for (int64_t block = 0; block < result.blocks(); ++block) {
    std::map<int, uint32_t> symbols;
    for (uint32_t i = result.offsets[block]; i < result.offsets[block + 1]; ++i)
      symbols[result.positions[i]] = 1 + 2 * result.levels[i] + (result.signs[i] < 0 ? 1 : 0);
    for (int position = 0; position < kAll; position += 2) {
      blocks[block].push_back(17 * symbols[position] + symbols[position + 1]);
      ++counts[blocks[block].back()];
    }
  }
  const std::vector<CodeLength> lengths = CodeLengths(counts);
  std::string body;
  BitWriter writer(&body);
  WriteCodeLengths(lengths, &writer);
  writer.AlignToByte();
  const std::vector<uint16_t> codes = PrefixCodes(lengths);
  std::vector<bool> bits;
  for (const std::vector<uint32_t>& pairs : blocks) {
    for (const uint32_t pair : pairs) {
      for (int bit = 0; bit < CodeBits(lengths[pair]); ++bit)
        bits.push_back(codes[pair] >> bit & 1);
    }
  }
  const std::string group = ToBitmap(bits);
  AppendLittleEndian(&body, static_cast<uint32_t>(group.size()));
  body += ToBitmap(std::vector<bool>(result.blocks(), true));
  for (const uint8_t code : result.codes) body += static_cast<char>(code);
  return body + group;
}

TEST(DensePayloadTest, ResultFollowsTheGrammar) {
  const DeltaResult result = RandomDeltaResult(3, kAll, 9, 4);
  std::string body;
  AppendDenseResult(DenseOf(result), &body);
  EXPECT_TRUE(body == PlainResultBody(result));
}

TEST(DensePayloadTest, RefusesUpdateByName) {
  const std::string bytes = EncodeDeltaUpdate(kIdentity, SomeEmpty());
  const size_t body = kPayloadHeaderBytes;  // one byte of bitmap, three codes, then signs
  const auto changed = [&](size_t at, int value) {
    return FixChecksum(WithByte(bytes, body + at, value));
  };
  EXPECT_EQ(Validate(changed(0, 0b1010), 3),
            absl::InvalidArgumentError("the bitmap of blocks does not end with zero bits"));
  EXPECT_EQ(Validate(changed(3, 1), 3),
            absl::InvalidArgumentError("block 2: an empty record is not all 0"));
  EXPECT_EQ(Validate(changed(4 + 511, 0x80), 3),
            absl::InvalidArgumentError("block 0: an empty record is not all 0"));
  EXPECT_EQ(Validate(changed(2, 201), 3, /*cap=*/200),
            absl::InvalidArgumentError("block 1: scale code 201 is above the cap 200"));
  EXPECT_EQ(Validate(changed(2, 201), 3, /*cap=*/201), absl::OkStatus());
  EXPECT_EQ(Validate(FinishPayload(StartPayload(kIdentity, PayloadKind::kDenseDeltaUpdate, kAll, 3)
                                       .append("short")),
                     3),
            absl::InvalidArgumentError("a body of 5 bytes, expected 1540"));
  EXPECT_EQ(ValidateDeltaUpdate(bytes,
                                {.layout_hash = kIdentity.layout_hash,
                                 .round = kIdentity.round,
                                 .segment = kIdentity.segment,
                                 .blocks = 3,
                                 .k = 4095},
                                std::vector<uint8_t>(3, 255)),
            absl::InvalidArgumentError("payload: kind 6, expected 4"));
}

TEST(DensePayloadTest, RefusesTruncations) {
  ExpectTruncationsAreRefused(EncodeDeltaUpdate(kIdentity, RandomDelta(kAll, 2, 1)),
                              [](absl::string_view bytes) { return Validate(bytes, 2); });
  ExpectTruncationsAreRefused(
      EncodeResult(RandomDeltaResult(3, kAll, 2, 1)),
      [](absl::string_view bytes) { return DecodeResult(bytes, 2).status(); });
}

TEST(DensePayloadTest, FlippedBytesAreCaught) {
  ExpectFlipsAreCaught(
      EncodeDeltaUpdate(kIdentity, SomeEmpty()),
      [](const std::string& bytes) -> absl::StatusOr<DeltaUpdate> {
        return DecodeDeltaUpdate(bytes, Expect(3));
      },
      [](const DeltaUpdate& update) { return EncodeDeltaUpdate(kIdentity, update); });
  ExpectFlipsAreCaught(
      EncodeResult(RandomDeltaResult(3, kAll, 2, 1)),
      [](const std::string& bytes) { return DecodeResult(bytes, 2); }, EncodeResult);
}

TEST(DensePayloadTest, ResultsRoundTripWithAnyNumberOfThreads) {
  constexpr uint32_t kBlocks = kGroupBlocks + 3;
  for (const int workers : {1, 3}) {
    const DeltaResult result = RandomDeltaResult(workers, kAll, kBlocks, 8);
    const std::string bytes = EncodeResult(result);
    EXPECT_LE(bytes.size(), MaxDeltaResultBytes(kBlocks));
    for (const int threads : {1, 2, 64}) {
      const absl::StatusOr<DeltaResult> decoded =
          DecodeDeltaResult(bytes, Expect(kBlocks), threads);
      ASSERT_EQ(decoded.status(), absl::OkStatus());
      EXPECT_TRUE(*decoded == result) << workers << " workers, " << threads << " threads";
    }
  }
}

TEST(DensePayloadTest, EmptyAndConstantResultsRoundTrip) {
  DeltaResult none, empty, constant;  // one symbol takes no bits
  empty.offsets = {0, 0, 0};
  empty.codes = {0, 0};
  constant.offsets = {0, 0, kAll};
  constant.codes = {0, 7};
  for (int i = 0; i < kAll; ++i) {
    constant.positions.push_back(static_cast<uint16_t>(i));
    constant.signs.push_back(-1);
    constant.levels.push_back(0);
  }
  for (const DeltaResult& result : {none, empty, constant}) {
    const auto blocks = static_cast<uint32_t>(result.blocks());
    EXPECT_TRUE(DecodeResult(EncodeResult(result), blocks).value() == result) << blocks;
  }
}

TEST(DensePayloadTest, KindFollowsFromTheRunsK) {
  const DeltaResult result = RandomDeltaResult(2, kAll, 3, 1);
  EXPECT_EQ(DecodeResult(EncodeDeltaResult(kIdentity, result), 3).status(),
            absl::InvalidArgumentError("payload: kind 5, expected 7"));
  PayloadExpectation other = Expect(3);
  other.k = 32;
  EXPECT_EQ(DecodeDeltaResult(EncodeResult(result), other).status(),
            absl::InvalidArgumentError("payload: kind 7, expected 5"));
}

// A body whose parts can be wrong one by one.
struct ResultBody {
  std::vector<CodeLength> lengths = std::vector<CodeLength>(kDenseSymbols * kDenseSymbols);
  std::vector<uint32_t> sizes = {0};
  std::string filled = std::string(1, '\0');
  std::string codes = std::string(1, '\0');
  std::string group;

  ResultBody() = default;
  ResultBody(std::string of_filled, uint32_t size, std::string of_group)
      : sizes({size}), filled(std::move(of_filled)), group(std::move(of_group)) {}

  absl::Status Decode() const {
    std::string bytes = StartPayload(kIdentity, PayloadKind::kDenseDeltaResult, 0, 1);
    BitWriter writer(&bytes);
    WriteCodeLengths(lengths, &writer);
    writer.AlignToByte();
    for (const uint32_t size : sizes) AppendLittleEndian(&bytes, size);
    return DecodeResult(FinishPayload(bytes + filled + codes + group), 1).status();
  }
};

TEST(DensePayloadTest, RefusesResultByName) {
  ResultBody body;
  EXPECT_EQ(body.Decode(), absl::OkStatus());
  body.codes[0] = 1;
  EXPECT_EQ(body.Decode(), absl::InvalidArgumentError("block 0: it is empty and has a scale"));
  body = {"\2", 0, ""};
  EXPECT_EQ(body.Decode(),
            absl::InvalidArgumentError("the bitmap of blocks does not end with zero bits"));
  body = {"\1", 0, ""};
  EXPECT_EQ(body.Decode(),
            absl::InvalidArgumentError(
                "block 0: it has no entry, and is not in the bitmap of empty blocks"));
  body = {std::string(1, 0), 1, ""};
  EXPECT_EQ(body.Decode(),
            absl::InvalidArgumentError("group: needs 1 bytes at offset 7, 0 are left"));
  body = {std::string(1, 0), 0, "x"};
  EXPECT_EQ(body.Decode(), absl::InvalidArgumentError("1 bytes after the groups"));
  body = {std::string(1, 0), 1, "x"};
  EXPECT_EQ(body.Decode(), absl::InvalidArgumentError("group 0 ends at bit 0 of 1 bytes"));
  body = ResultBody();
  body.lengths[3] = kOnlySymbol;
  EXPECT_EQ(body.Decode(),
            absl::InvalidArgumentError("the code lengths are not those of what was decoded"));
  body.lengths[3] = 2;
  EXPECT_EQ(body.Decode(), absl::InvalidArgumentError("pairs: the code is not complete"));
  // 2048 pairs of 1 bit each.
  body = {"\1", 255, std::string(255, '\x55')};
  body.lengths[3] = body.lengths[4] = 1;
  EXPECT_EQ(body.Decode(), absl::InvalidArgumentError("group 0 ends at bit 2048 of 255 bytes"));
}

// 2046 pairs with a code of one bit and two others of two bits: the last byte has six bits that say
// nothing.
TEST(DensePayloadTest, RefusesPaddingThatIsNotZero) {
  ResultBody body = {"\1", 257, std::string(257, '\0')};
  body.lengths[18] = 1;
  body.lengths[19] = body.lengths[20] = 2;
  body.group[0] = 0b1101;
  EXPECT_EQ(body.Decode(), absl::OkStatus());
  body.group[256] = '\x80';
  EXPECT_EQ(body.Decode(), absl::InvalidArgumentError("group 0 does not end with zero bits"));
}

TEST(DensePayloadTest, ResultsAreNearTheirEntropy) {
  for (const int workers : {1, 2, 3, 4, 8, 32}) {
    const DenseResult result = DenseOf(RandomDeltaResult(workers, kAll, 32, 7));
    std::map<int, int64_t> symbols;
    for (const uint8_t symbol : result.symbols) ++symbols[symbol];
    std::string body;
    AppendDenseResult(result, &body);
    const double bits = 8.0 * static_cast<double>(body.size());
    const double ratio = bits / bench::TotalEntropy(symbols);
    std::cout << "W=" << workers << ": " << bits / static_cast<double>(result.symbols.size())
              << " bits a position, " << ratio << " of the empirical entropy\n";
    EXPECT_LE(ratio, 1.03) << workers;
  }
}

}  // namespace
}  // namespace distro
