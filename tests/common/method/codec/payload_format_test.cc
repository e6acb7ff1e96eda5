// The worked example of docs/payload_format.md, read from the page.
#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "common/base/file.h"
#include "common/method/deltas/payload.h"
#include "common/method/signs/payload.h"
#include "gtest/gtest.h"
#include "tests/testing/plain_deltas.h"
#include "tests/testing/plain_updates.h"

namespace distro {
namespace {

using ::distro::testing::DecodeDeltaUpdate;
using ::distro::testing::DecodeSignUpdate;

constexpr PayloadIdentity kIdentity = {
    .layout_hash = 0x1122334455667788, .round = RoundId(5), .segment = SegmentId(2)};
constexpr PayloadExpectation kExpected = {.layout_hash = 0x1122334455667788,
                                          .round = RoundId(5),
                                          .segment = SegmentId(2),
                                          .blocks = 3,
                                          .k = 4};

// The bytes of the page's block "```hex <name>".
std::string HexBlock(const std::string& name) {
  const std::string page = ReadFile(DISTRO_SOURCE_DIR "/docs/payload_format.md").value();
  const std::string start = "```hex " + name + "\n";
  const size_t begin = page.find(start) + start.size();
  const std::string hex = page.substr(begin, page.find("```", begin) - begin);
  return absl::HexStringToBytes(absl::StrReplaceAll(hex, {{" ", ""}, {"\n", ""}}));
}

TEST(PayloadFormatTest, DecodesPagesUpdate) {
  const SignUpdate update = {.k = 4,
                             .positions = {0, 1, 2, 3, 10, 64, 700, 4095, 0, 0, 0, 0},
                             .signs = {1, -1, 1, 1, -1, 1, 1, -1, 0, 0, 0, 0}};
  EXPECT_EQ(DecodeSignUpdate(HexBlock("update"), kExpected).value(), update);
  EXPECT_EQ(EncodeSignUpdate(kIdentity, update), HexBlock("update"));
}

TEST(PayloadFormatTest, DecodesPagesVotes) {
  const Votes votes = {.offsets = {0, 3, 3, 6},
                       .positions = {0, 1, 700, 64, 65, 4095},
                       .values = {2, -1, 1, 5, -1, 1}};
  EXPECT_EQ(DecodeVotes(HexBlock("votes"), kExpected).value(), votes);
  EXPECT_EQ(EncodeVotes(kIdentity, votes), HexBlock("votes"));
}

TEST(PayloadFormatTest, DecodesPagesDeltas) {
  const DeltaUpdate update = {.k = 2,
                              .positions = {0, 64, 10, 4095, 0, 0},
                              .signs = {1, -1, -1, -1, 0, 0},
                              .codes = {120, 118, 0}};
  PayloadExpectation expected = kExpected;
  expected.k = 2;
  EXPECT_EQ(DecodeDeltaUpdate(HexBlock("delta update"), expected).value(), update);
  EXPECT_EQ(EncodeDeltaUpdate(kIdentity, update), HexBlock("delta update"));
}

TEST(PayloadFormatTest, DecodesPagesDeltaResult) {
  const DeltaResult result = {.offsets = {0, 3, 3, 5},
                              .positions = {0, 1, 64, 10, 4095},
                              .signs = {1, -1, 1, -1, -1},
                              .levels = {0, 2, 7, 1, 0},
                              .codes = {120, 0, 121}};
  EXPECT_EQ(DecodeDeltaResult(HexBlock("delta result"), kExpected).value(), result);
  EXPECT_EQ(EncodeDeltaResult(kIdentity, result), HexBlock("delta result"));
}

TEST(PayloadFormatTest, DecodesPagesDenseDeltaResult) {
  DeltaResult result;  // every position of the first and the last block
  for (int i = 0; i < 2 * kBlockElements; ++i) {
    result.positions.push_back(static_cast<uint16_t>(i % kBlockElements));
    result.signs.push_back(i % 2 == 0 ? 1 : -1);
    result.levels.push_back(static_cast<uint8_t>(i % 2));
  }
  result.offsets = {0, kBlockElements, kBlockElements, 2 * kBlockElements};
  result.codes = {120, 0, 121};
  PayloadExpectation expected = kExpected;
  expected.k = kBlockElements;
  const std::string bytes = HexBlock("dense delta result");
  ASSERT_EQ(absl::BytesToHexString(EncodeDenseDeltaResult(kIdentity, DenseOf(result))),
            absl::BytesToHexString(bytes));
  EXPECT_EQ(DecodeDeltaResult(bytes, expected).value(), result);
}

}  // namespace
}  // namespace distro
