#include "common/feed/verified_payload.h"

#include <string>

#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/log/log_fixture.h"

namespace distro::server {
namespace {

using ::testing::HasSubstr;

class VerifiedPayloadTest : public LogFixture {
 protected:
  void SetUp() override { Fill(1); }

  std::shared_ptr<const RecordReader> Record() {
    return *RecordReader::Open(Path("0000000000.record"), RecordKind::kRound);
  }
  // What is given out from `offset` on, `piece` bytes at a time, and how it ends.
  std::pair<std::string, absl::Status> ReadAll(uint64_t offset, uint64_t piece) {
    const auto record = Record();
    const uint64_t total = record->payload_bytes(kSegment);
    VerifiedPayload payload(record, kSegment, offset);
    std::string all;
    while (!payload.done()) {
      const auto read = payload.Read(std::min(piece, total - offset - all.size()));
      if (!read.ok()) return {all, read.status()};
      all += *read;
    }
    return {all, absl::OkStatus()};
  }
  void Flip(uint64_t at) {
    std::string bytes = *ReadFile(Path("0000000000.record"));
    bytes.at(at) ^= 1;
    ASSERT_TRUE(WriteFileAtomically(Path("0000000000.record"), bytes).ok());
  }

  static constexpr SegmentId kSegment{1};
};

TEST_F(VerifiedPayloadTest, GivesTheBytesFromAnyOffsetInAnyPieces) {
  const auto record = Record();
  const std::string payload = *record->Read(kSegment, 0, record->payload_bytes(kSegment));
  for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, payload.size() / 2, payload.size() - 1}) {
    for (const uint64_t piece : {uint64_t{1}, uint64_t{7}, payload.size()}) {
      const auto [bytes, status] = ReadAll(offset, piece);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(bytes, payload.substr(offset));
    }
  }
}

TEST_F(VerifiedPayloadTest, WithholdsEndOfDamaged) {
  const RecordEntry entry = Record()->entries()[kSegment.value()];
  for (uint64_t i = 0; i < entry.bytes; ++i) {
    Flip(entry.offset + i);
    for (const uint64_t offset : {uint64_t{0}, entry.bytes - 1}) {  // also what was sent before
      const auto [bytes, status] = ReadAll(offset, 7);
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << i;
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr("0000000000.record: the checksum of segment 1 does not match"));
      EXPECT_LT(offset + bytes.size(), entry.bytes);
    }
    Flip(entry.offset + i);
  }
}

TEST_F(VerifiedPayloadTest, RefusesToReadPastTheEnd) {
  const auto record = Record();
  VerifiedPayload payload(record, kSegment, 0);
  EXPECT_EQ(payload.Read(record->payload_bytes(kSegment) + 1).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace distro::server
