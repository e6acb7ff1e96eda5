// Damage of every kind to files of the log: the start is refused with DataLoss that names the file,
// never a record taken for good.
#include <cstring>
#include <filesystem>

#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/base/reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/record_reader.h"
#include "server/log/round_log.h"
#include "tests/server/log/log_fixture.h"

namespace distro::server {
namespace {

using ::testing::HasSubstr;

class RecordDamageTest : public LogFixture {
 protected:
  void SetUp() override { Fill(3); }

  void ExpectDataLoss(const std::string& name, const std::string& message) {
    const absl::Status status = Open().status();
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << message << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(Path(name) + ": "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_THAT(std::string(status.message()), HasSubstr("restore this file"));
  }

  // Writes over the file what `change` makes of its bytes, expects DataLoss, and puts the file
  // back.
  template <typename Change>
  void ExpectDamageIsFound(const std::string& name, const std::string& what, const Change& change) {
    const std::string good = *ReadFile(Path(name));
    std::string bad = good;
    change(bad);
    ASSERT_TRUE(WriteFile(name, bad));
    ExpectDataLoss(name, what);
    ASSERT_TRUE(WriteFile(name, good));
  }

  bool WriteFile(const std::string& name, const std::string& bytes) {
    FILE* file = std::fopen(Path(name).c_str(), "wb");
    const bool ok = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
    return std::fclose(file) == 0 && ok;
  }
};

TEST_F(RecordDamageTest, TruncatedAnywhere) {
  for (const std::string name : {"0000000002.record", "start.record"}) {
    const size_t size = std::filesystem::file_size(Path(name));
    for (size_t left = 0; left < size; ++left) {
      ExpectDamageIsFound(name, "", [&](std::string& bytes) { bytes.resize(left); });
      if (HasFailure()) return;
    }
  }
  EXPECT_TRUE(Open().ok());
}

TEST_F(RecordDamageTest, FlippedAnywhere) {
  for (const std::string name : {"0000000002.record", "start.record"}) {
    const size_t size = std::filesystem::file_size(Path(name));
    for (size_t i = 0; i < size; ++i) {
      ExpectDamageIsFound(name, "", [&](std::string& bytes) { bytes[i] ^= 1 << (i % 8); });
      if (HasFailure()) return;
    }
  }
  EXPECT_TRUE(Open().ok());
}

TEST_F(RecordDamageTest, IsFoundInPack) {
  ASSERT_TRUE((*Open())->Prune(RoundId(2)).ok());
  const std::string name = "0000000000.record";  // the pack of rounds 0 and 1
  const size_t size = std::filesystem::file_size(Path(name));
  for (size_t i = 0; i < size; ++i) {
    ExpectDamageIsFound(name, "", [&](std::string& bytes) { bytes.resize(i); });
    ExpectDamageIsFound(name, "", [&](std::string& bytes) { bytes[i] ^= 1 << (i % 8); });
    if (HasFailure()) return;
  }
  EXPECT_TRUE(Open().ok());
}

// To move a pack away and go on before it would lose rounds that no snapshot replaces.
TEST_F(RecordDamageTest, WithoutACopyOfAPackTheArchiverHasOne) {
  ASSERT_TRUE((*Open())->Prune(RoundId(2)).ok());
  ExpectDamageIsFound("0000000000.record", "distroctl run restore",
                      [](std::string& bytes) { bytes.resize(bytes.size() - 1); });
  ExpectDamageIsFound("0000000000.record", "distroctl run restore",
                      [](std::string& bytes) { bytes[20] ^= 1; });
}

TEST_F(RecordDamageTest, IsFoundInPlaceOfPack) {
  ASSERT_TRUE((*Open())->Prune(RoundId(2)).ok());
  std::filesystem::copy_file(Path("0000000000.record"), Path("0000000002.record"),
                             std::filesystem::copy_options::overwrite_existing);
  ExpectDataLoss("0000000002.record", "is the pack of rounds 0 to 1");
  std::filesystem::rename(Path("0000000002.record"), Path("0000000000.record"));
  EXPECT_EQ((*Open())->next_round(), RoundId(2));
}

TEST_F(RecordDamageTest, LongerThanWritten) {
  ExpectDamageIsFound("0000000001.record", "the end of the file", [](auto& b) { b += "x"; });
  ExpectDamageIsFound("0000000001.record", "the end of the file",
                      [](auto& b) { b += std::string(100, '\0'); });
  // A second record after the first: its footer is good, but its payloads do not begin at the
  // front.
  ExpectDamageIsFound("0000000001.record", "do not fill the file", [](auto& b) { b += b; });
}

// The payloads of older records are not read at start, but their headers and the chain are.
TEST_F(RecordDamageTest, OldHeadersAreVerifiedOldPayloadsLater) {
  const std::string name = "0000000000.record";
  const std::string good = *ReadFile(Path(name));
  std::string bad = good;
  bad[20] ^= 1;
  ASSERT_TRUE(WriteFile(name, bad));
  auto log = Open(/*verify_payloads=*/2);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ((*(*log)->OpenRecord(RoundId(0)))->VerifyPayloads().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(Open(/*verify_payloads=*/3).status().code(), absl::StatusCode::kDataLoss);
  bad = good;
  bad[bad.size() - 60] ^= 1;  // in the header
  ASSERT_TRUE(WriteFile(name, bad));
  ExpectDataLoss(name, "the header's checksum does not match");
}

TEST_F(RecordDamageTest, MissingFiles) {
  std::filesystem::rename(Path("0000000001.record"), Path("away"));
  ExpectDataLoss("0000000001.record", "is missing");
  std::filesystem::rename(Path("away"), Path("0000000001.record"));
  std::filesystem::rename(Path("start.record"), Path("away"));
  ExpectDataLoss("start.record", "is missing");
  std::filesystem::rename(Path("away"), Path("start.record"));
  std::filesystem::remove(Path("0000000002.record"));
  EXPECT_EQ((*Open())->next_round(), RoundId(2)) << "without the newest the log is shorter";
}

TEST_F(RecordDamageTest, FilesInEachOthersPlace) {
  std::filesystem::copy_file(Path("0000000001.record"), Path("0000000002.record"),
                             std::filesystem::copy_options::overwrite_existing);
  ExpectDataLoss("0000000002.record", "is of round 1");
}

TEST_F(RecordDamageTest, IsFoundInChain) {
  const std::string foreign = folder_.File("foreign");
  auto other = RoundLog::Open(foreign, &layout_, 0, Disk::Real(), &log_);
  v1::StartHeader start = Start();
  start.set_run_id("run-2");
  ASSERT_TRUE((*other)->WriteStart(start).ok());
  ASSERT_TRUE(Write(other->get()).ok());
  std::filesystem::copy_file(foreign + "/0000000000.record", Path("0000000000.record"),
                             std::filesystem::copy_options::overwrite_existing);
  ExpectDataLoss("0000000000.record", "predecessor hash");
}

// An undamaged record of a format that comes later is no damage.
TEST_F(RecordDamageTest, DiffersFromNewerVersion) {
  std::string bytes = *ReadFile(Path("0000000001.record"));
  bytes[8] = 3;
  const size_t footer = bytes.size() - kRecordFooterBytes;
  const uint64_t checksum = Xxh3(bytes.substr(0, kRecordPrefixBytes) + bytes.substr(footer, 32));
  std::memcpy(bytes.data() + footer + 32, &checksum, sizeof(checksum));
  ASSERT_TRUE(WriteFile("0000000001.record", bytes));
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), "version");
  EXPECT_EQ(status.message(), Path("0000000001.record") +
                                  ": format version 3 is newer than this program knows (2): use a "
                                  "newer version of it");
}

TEST_F(RecordDamageTest, IsFoundInModel) {
  const Layout other = *Layout::Create(*Manifest::Create({{"a", {64, 64}}}), 2);
  const absl::Status status = RoundLog::Open(Dir(), &other, 1, Disk::Real(), &log_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("another model"));
}

TEST_F(RecordDamageTest, IsFoundWhileLogIsOpen) {
  auto log = Open();
  std::filesystem::copy_file(Path("0000000001.record"), Path("0000000002.record"),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ((*log)->OpenRecord(RoundId(2)).status().code(), absl::StatusCode::kDataLoss);
  const auto record = (*log)->OpenRecord(RoundId(1));
  std::filesystem::resize_file(Path("0000000001.record"), 20);
  EXPECT_EQ((*record)->Read(SegmentId(0), 0, 50).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace distro::server
