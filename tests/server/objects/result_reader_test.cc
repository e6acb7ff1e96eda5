#include "server/objects/result_reader.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

namespace distro::server {
namespace {

using absl::StatusCode;

class Record final : public StoredRecord {
 public:
  explicit Record(std::string payload) : payload_(std::move(payload)) {}
  const std::string& header_bytes() const override { return header_; }
  uint32_t segments() const override { return 4; }
  uint64_t payload_bytes(SegmentId segment) const override {
    return segment == SegmentId(3) ? payload_.size() : 0;
  }
  absl::StatusOr<std::string> Read(SegmentId segment, uint64_t offset,
                                   uint64_t size) const override {
    if (segment != SegmentId(3)) return absl::InvalidArgumentError("another segment");
    return payload_.substr(offset, size);
  }
  absl::Status CheckChecksum(SegmentId, uint64_t) const override { return absl::OkStatus(); }

 private:
  const std::string header_;
  const std::string payload_;
};

class ResultReaderTest : public ::testing::Test {
 protected:
  ResultReaderTest()
      : memory_(std::make_shared<const std::string>("of the open round")),
        found_(memory_),
        reader_(SegmentId(3), [this] { return found_; }) {}

  // The round is over: nobody but the reader may have the bytes.
  void Forget(absl::StatusOr<ResultReader::Found> found) {
    found_ = std::move(found);
    memory_.reset();
  }

  SharedBytes memory_;
  absl::StatusOr<ResultReader::Found> found_;
  ResultReader reader_;
};

TEST_F(ResultReaderTest, ReadsOpenRoundFromMemory) {
  EXPECT_EQ(*reader_.Open(), memory_->size());
  EXPECT_EQ(*reader_.Read(3, 8), "the open");
}

TEST_F(ResultReaderTest, KeepsNoBytesOfRoundThatIsOverAndReadsItsRecord) {
  EXPECT_EQ(*reader_.Open(), memory_->size());
  const std::weak_ptr<const std::string> bytes = memory_;
  Forget(ResultReader::Found(std::make_shared<const Record>(*memory_)));
  EXPECT_TRUE(bytes.expired());
  EXPECT_EQ(*reader_.Read(3, 8), "the open");
  EXPECT_EQ(*reader_.Read(12, 5), "round");
}

TEST_F(ResultReaderTest, ReadsRecordOfEarlierRound) {
  Forget(ResultReader::Found(std::make_shared<const Record>("earlier")));
  EXPECT_EQ(*reader_.Open(), 7U);
  EXPECT_EQ(*reader_.Read(0, 7), "earlier");
}

TEST_F(ResultReaderTest, ReportsResultThatIsGone) {
  EXPECT_TRUE(reader_.Open().ok());
  Forget(absl::FailedPreconditionError("pruned"));
  EXPECT_EQ(reader_.Read(0, 1).status().code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace distro::server
