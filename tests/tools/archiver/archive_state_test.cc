#include "tools/archiver/archive_state.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "common/base/checksum.h"
#include "common/base/reason.h"
#include "gtest/gtest.h"

namespace distro::tools {
namespace {

ArchiveState SomeState() {
  ArchiveState state;
  state.run_id = "demo-1a2b3c4d";
  state.epoch = 1763728000;
  state.snapshot.set_round(42);
  state.snapshot.set_size_bytes(123456);
  std::string sha256;
  for (int i = 0; i < 32; ++i) sha256.push_back(static_cast<char>(i * 8));
  state.snapshot.set_sha256(sha256);
  state.snapshot.set_state_hash(0x0123456789abcdef);
  state.snapshot.set_log_hash(0xfedcba9876543210);
  state.published_round = 40;
  state.result_bytes = 999;
  return state;
}

// With the checksum of what it holds.
std::string Sealed(std::string text) {
  text.resize(text.rfind("checksum "));
  return absl::StrCat(text, "checksum ", ToHex(Xxh3(text)), "\n");
}

TEST(ArchiveStateTest, ReadsWhatItWrote) {
  const ArchiveState state = SomeState();
  const absl::StatusOr<ArchiveState> read = ParseArchiveState(EncodeArchiveState(state));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->run_id, state.run_id);
  EXPECT_EQ(read->epoch, state.epoch);
  EXPECT_EQ(read->snapshot.SerializeAsString(), state.snapshot.SerializeAsString());
  EXPECT_EQ(read->published_round, state.published_round);
  EXPECT_EQ(read->result_bytes, state.result_bytes);
}

// The worked example of docs/files.md.
TEST(ArchiveStateTest, IsTheTextOfThePage) {
  EXPECT_EQ(EncodeArchiveState(SomeState()),
            "distro-archiver 1\n"
            "run demo-1a2b3c4d\n"
            "epoch 1763728000\n"
            "round 42\n"
            "log_hash fedcba9876543210\n"
            "state_hash 0123456789abcdef\n"
            "snapshot_bytes 123456\n"
            "snapshot_sha256 0008101820283038404850586068707880889098a0a8b0b8c0c8d0d8e0e8f0f8\n"
            "published_round 40\n"
            "result_bytes 999\n"
            "checksum 59bb3ccf69d6c1e6\n");
}

TEST(ArchiveStateTest, RefusesEveryPrefix) {
  const std::string text = EncodeArchiveState(SomeState());
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_EQ(ParseArchiveState(text.substr(0, size)).status().code(), absl::StatusCode::kDataLoss);
  }
  EXPECT_EQ(ParseArchiveState(text + "\n").status().code(), absl::StatusCode::kDataLoss);
}

TEST(ArchiveStateTest, RefusesEveryFlippedByte) {
  const std::string text = EncodeArchiveState(SomeState());
  for (size_t i = 0; i < text.size(); ++i) {
    for (const char flip : {'\x01', '\x20', '\x80'}) {
      std::string other = text;
      other[i] = static_cast<char>(other[i] ^ flip);
      EXPECT_EQ(ParseArchiveState(other).status().code(), absl::StatusCode::kDataLoss) << i;
    }
  }
}

// Behind a right checksum there is still only one text for one state.
TEST(ArchiveStateTest, RefusesWhatItWouldNotWrite) {
  const std::string text = EncodeArchiveState(SomeState());
  const std::pair<std::string, std::string> kChanges[] = {
      {"round 42", "round 042"},
      {"round 42", "round -1"},
      {"round 42", "round 99999999999999999999"},
      {"run demo-1a2b3c4d", "run DEMO"},
      {"run demo-1a2b3c4d", "run "},
      {"state_hash 0123456789abcdef", "state_hash 0123456789ABCDEF"},
      {"state_hash 0123456789abcdef", "state_hash 123456789abcdef"},
      {"snapshot_sha256 00", "snapshot_sha256 "},
      {"snapshot_sha256 00", "snapshot_sha256 zz"},
      {"epoch 1763728000\n", ""},
      {"result_bytes 999\n", "result_bytes 999\nmore 1\n"}};
  for (const auto& [from, to] : kChanges) {
    const std::string other = Sealed(absl::StrReplaceAll(text, {{from, to}}));
    EXPECT_EQ(ParseArchiveState(other).status().code(), absl::StatusCode::kDataLoss) << to;
  }
}

TEST(ArchiveStateTest, NamesANewerFormat) {
  const std::string other = Sealed(absl::StrReplaceAll(
      EncodeArchiveState(SomeState()), {{"distro-archiver 1", "distro-archiver 2"}}));
  const absl::Status status = ParseArchiveState(other).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), "version");
  EXPECT_EQ(
      status.message(),
      "state: format version 2 is newer than this program knows (1): use a newer version of it");
}

}  // namespace
}  // namespace distro::tools
