// The newest headers in one file, which restoring a run needs besides the parameters.
#include "tools/archiver/archive_log.h"

#include "common/base/checksum.h"
#include "gtest/gtest.h"
#include "tests/tools/archiver/replica_fixture.h"

namespace distro::tools {
namespace {

class ArchiveLogTest : public ::testing::Test {
 protected:
  // The next round of the small replica.
  CommittedRound Next() {
    const CommittedRound round = testing::Committed(
        small_.layout,
        testing::BuildRound(small_.layout, small_.replica.next_round(), small_.replica.log_hash()));
    EXPECT_TRUE(small_.replica.Apply(round).ok());
    return round;
  }
  testing::SmallReplica small_;
  v1::StoredArchive archive_;
};

TEST_F(ArchiveLogTest, KeepsTheNewestHeadersAsTheirBytes) {
  for (int i = 0; i < kArchivedHeaders + 5; ++i) AddHeader(Next(), &archive_);
  ASSERT_EQ(archive_.headers_size(), kArchivedHeaders);
  EXPECT_EQ(Xxh3(*archive_.headers().rbegin()), small_.replica.log_hash());
  v1::RoundHeader first;
  ASSERT_TRUE(first.ParseFromString(archive_.headers(0)));
  EXPECT_EQ(first.round(), 5u);
}

TEST_F(ArchiveLogTest, RestartsAtGap) {
  AddHeader(Next(), &archive_);
  AddHeader(Next(), &archive_);
  Next();
  AddHeader(Next(), &archive_);
  EXPECT_EQ(archive_.headers_size(), 1);
}

TEST_F(ArchiveLogTest, SaysWhatTheRunIs) {
  v1::GetRunResponse run;
  run.set_run_id("small-1");
  run.mutable_config()->set_name("small");
  run.mutable_config()->set_rounds(50);
  run.set_created_rounds(20);
  run.set_created_sha256("hash");
  run.set_model_config_json("{}");
  run.set_data_fingerprint("data");
  run.add_companions()->set_name("tokenizer.json");
  const v1::StoredArchive archive = ArchiveOf(run);
  EXPECT_EQ(archive.run().config().rounds(), 20u) << "an extension is in the records";
  EXPECT_EQ(archive.run().created_sha256(), "hash");
  EXPECT_EQ(archive.run().companions(0).name(), "tokenizer.json");
  EXPECT_EQ(archive.data_fingerprint(), "data");
  run.clear_created_rounds();
  EXPECT_EQ(ArchiveOf(run).run().config().rounds(), 50u) << "of an older aggregator";
}

TEST_F(ArchiveLogTest, DamageOfAnyByteIsFound) {
  archive_.mutable_run()->set_run_id("small-1");
  AddHeader(Next(), &archive_);
  const std::string bytes = EncodeArchiveLog(archive_);
  EXPECT_EQ(EncodeArchiveLog(*ParseArchiveLog(bytes)), bytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(ParseArchiveLog(bytes.substr(0, i)).status().code(), absl::StatusCode::kDataLoss);
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_EQ(ParseArchiveLog(damaged).status().code(), absl::StatusCode::kDataLoss) << i;
  }
}

}  // namespace
}  // namespace distro::tools
