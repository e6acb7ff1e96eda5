#include "server/log/record_format.h"

#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "gtest/gtest.h"
#include "server/log/record_reader.h"
#include "tests/testing/scratch_folder.h"

namespace distro::server {
namespace {

// The bytes of the worked example: the hex digits of the first code block that has lines of them.
std::string ExampleOfThePage() {
  const std::string page = *ReadFile(absl::StrCat(DISTRO_SOURCE_DIR, "/docs/files.md"));
  const size_t begin = page.find("```\n44 53");
  const size_t end = page.find("```", begin + 4);
  std::string digits;
  for (absl::string_view line : absl::StrSplit(page.substr(begin + 4, end - begin - 4), '\n')) {
    for (const char c : line.substr(0, line.find("   "))) {
      if (absl::ascii_isxdigit(c)) digits += c;
    }
  }
  return absl::HexStringToBytes(digits);
}

TEST(RecordFormatTest, WritesExampleOfPage) {
  std::string record = EncodeRecordPrefix(RecordKind::kRound) + "votes";
  const RecordEntry entry = {.offset = 16, .bytes = 5, .checksum = Xxh3("votes")};
  record += EncodeRecordTail(RecordKind::kRound, RoundId(42), {entry}, "header");
  EXPECT_EQ(absl::BytesToHexString(ExampleOfThePage()), absl::BytesToHexString(record));
}

TEST(RecordFormatTest, ReadsExampleOfPage) {
  const testing::ScratchFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.File("record"), ExampleOfThePage()).ok());
  const auto record = RecordReader::Open(folder.File("record"), RecordKind::kRound);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ((*record)->round(), RoundId(42));
  EXPECT_EQ((*record)->header_bytes(), "header");
  EXPECT_EQ((*record)->chain_hash(), Xxh3("header"));
  EXPECT_EQ((*record)->segments(), 1);
  EXPECT_EQ(*(*record)->Read(SegmentId(0), 0, 5), "votes");
  EXPECT_TRUE((*record)->VerifyPayloads().ok());
  EXPECT_EQ(RecordReader::Open(folder.File("record"), RecordKind::kStart).status().code(),
            absl::StatusCode::kDataLoss);
}

// Tables with a correct checksum and impossible values.
TEST(RecordFormatTest, RefusesPayloadsThatDoNotFillTheFile) {
  const std::vector<std::vector<RecordEntry>> bad = {
      {{17, 4, 0}},              // a gap at the front
      {{16, 4, 0}},              // at the end
      {{16, 6, 0}},              // beyond the end
      {{16, 5, 0}, {16, 5, 0}},  // the same bytes twice
      {{16, 3, 0}, {18, 3, 0}},  // overlap
      {{16, 5, 0}, {21, 0, 0}},  // empty
      {{16, ~uint64_t{0}, 0}},   // wraps around
      {{16, 2, 0}, {19, 2, 0}},  // a gap in the middle
      {},                        // nothing
  };
  for (const auto& entries : bad) {
    const std::string table = EncodeRecordTable(entries);
    const RecordFooter footer = {.segments = static_cast<uint32_t>(entries.size()),
                                 .table_checksum = Xxh3(table)};
    EXPECT_EQ(ParseRecordTable(table, footer, 21).status().code(), absl::StatusCode::kDataLoss);
  }
  const std::string good = EncodeRecordTable({{18, 3, 7}, {16, 2, 8}});
  const auto entries = ParseRecordTable(good, {.segments = 2, .table_checksum = Xxh3(good)}, 21);
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ((*entries)[0].offset, 18);
  EXPECT_EQ((*entries)[1].checksum, 8);
}

// A pack with correct checksums and impossible values.
TEST(RecordFormatTest, RefusesPacksThatCannotBe) {
  const testing::ScratchFolder folder;
  const auto open = [&](uint64_t first, int rounds, const std::string& header) {
    std::string bytes = EncodeRecordPrefix(RecordKind::kPack);
    std::vector<RecordEntry> entries;
    for (int i = 0; i < rounds; ++i) {
      entries.push_back({.offset = bytes.size(), .bytes = 1, .checksum = Xxh3("h")});
      bytes += "h";
    }
    bytes += EncodeRecordTail(RecordKind::kPack, RoundId(first), entries, header);
    EXPECT_TRUE(WriteFileAtomically(folder.File("pack"), bytes).ok());
    return RecordReader::Open(folder.File("pack"), RecordKind::kRound);
  };
  EXPECT_EQ(open(0, 0, "").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(open(0, 2, "header").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(open(UINT64_MAX, 1, "").status().code(), absl::StatusCode::kDataLoss);
  const auto pack = open(7, 2, "");
  ASSERT_TRUE(pack.ok()) << pack.status();
  EXPECT_EQ((*pack)->end(), RoundId(9));
  EXPECT_EQ(*(*pack)->HeaderOf(RoundId(8)), "h");
  EXPECT_EQ((*pack)->ChainHashOf(RoundId(8)), Xxh3("h"));
}

// Programs before packs know version 1.
TEST(RecordFormatTest, VersionsPackAboveRecord) {
  EXPECT_EQ(EncodeRecordPrefix(RecordKind::kPruned)[8], 1);
  EXPECT_EQ(EncodeRecordPrefix(RecordKind::kPack)[8], 2);
}

// A footer with a good checksum whose sizes the file does not have.
TEST(RecordFormatTest, RefusesSizesBeyondTheFile) {
  const std::string prefix = EncodeRecordPrefix(RecordKind::kRound);
  const std::string tail = EncodeRecordTail(RecordKind::kRound, RoundId(1), {}, "header");
  const std::string footer = tail.substr(tail.size() - kRecordFooterBytes);
  const uint64_t bytes = prefix.size() + tail.size();
  EXPECT_TRUE(ParseRecordFooter(prefix, footer, bytes).ok());
  EXPECT_EQ(ParseRecordFooter(prefix, footer, bytes - 1).status().code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace distro::server
