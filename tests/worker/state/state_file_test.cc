#include "worker/state/state_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "common/base/checksum.h"
#include "common/base/file.h"
#include "tests/testing/scratch_folder.h"
#include "tests/worker/state/state_example.h"

namespace distro::worker {
namespace {

class StateFileTest : public ::testing::Test {
 protected:
  std::string Write() { return Write(example_); }
  std::string Write(const StateExample& example) {
    EXPECT_TRUE(
        WriteStateFile(path_, example.state, example.optimizer.elements(), example.shards()).ok());
    return *ReadFile(path_);
  }
  // OK, or what a damaged file may be.
  absl::Status ReadAll(absl::string_view bytes) {
    const absl::StatusOr<StateReader> reader = StateReader::FromBytes(bytes);
    if (!reader.ok()) return reader.status();
    return reader->Read(example_.layout, kSignMomentum).status();
  }

  StateExample example_;
  testing::ScratchFolder folder_;
  const std::string path_ = folder_.File("worker.state");
};

TEST_F(StateFileTest, GivesBackWhatWasWritten) {
  example_.Step();
  Write();
  const absl::StatusOr<StateReader> reader = StateReader::Open(path_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->state().run_id, "run-1");
  EXPECT_EQ(reader->state().worker, "w");
  EXPECT_EQ(reader->state().epoch, EpochId(6));
  EXPECT_EQ(reader->state().next_round, RoundId(9));
  EXPECT_EQ(reader->state().senders, (std::vector<uint64_t>{11, 12}));
  EXPECT_EQ(reader->state().pending_loss, 2.5);
  EXPECT_EQ(reader->state().pending_steps, 5u);
  EXPECT_EQ(reader->state().pending_samples, 48u);
  absl::StatusOr<StateReader::Contents> contents = reader->Read(example_.layout, kSignMomentum);
  ASSERT_TRUE(contents.ok()) << contents.status();
  const TensorBuffer momentum = example_.optimizer.momentum();
  for (int i = 0; i < momentum.tensors(); ++i) {
    const auto expected = momentum.tensor(i);
    ASSERT_EQ(contents->elements[0][i].size(), expected.size() * sizeof(float));
    EXPECT_EQ(std::memcmp(contents->elements[0][i].data(), expected.data(),
                          expected.size() * sizeof(float)),
              0);
  }
  ASSERT_TRUE(contents->pending.has_value());
  EXPECT_EQ(contents->pending->round, RoundId(9));
  testing::ShardedOptimizer other(&example_.layout, 2);
  other.Restore(momentum, contents->pending);
  const auto payloads = other.Encode(), expected = example_.optimizer.Encode();
  ASSERT_EQ(payloads.size(), expected.size());
  for (size_t i = 0; i < payloads.size(); ++i) EXPECT_EQ(*payloads[i], *expected[i]);
}

// More ranks than there are block rows, too.
TEST_F(StateFileTest, DoesNotShowHowTheMomentumIsCut) {
  example_.Step();
  const std::string expected = Write();
  for (const int ranks : {2, 3, 4}) {
    StateExample other(ranks);
    other.Step();
    EXPECT_EQ(Write(other), expected) << ranks;
  }
}

// The example of docs/files.md.
TEST_F(StateFileTest, BeginsAsItsPageShows) {
  example_.state.run_id = "r-1";
  example_.state.senders = {11};
  const unsigned char expected[] = {0x44, 0x53, 0x54, 0x52, 0x4f, 0x57, 0x53, 0x54, 0x03, 0x00,
                                    0x00, 0x00, 0x74, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00,
                                    0x72, 0x2d, 0x31, 0x01, 0x00, 0x00, 0x00, 0x77};
  EXPECT_EQ(Write().substr(0, sizeof(expected)),
            std::string(reinterpret_cast<const char*>(expected), sizeof(expected)));
}

TEST_F(StateFileTest, NeedsNoPending) {
  Write();
  const absl::StatusOr<StateReader> reader = StateReader::Open(path_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_FALSE(reader->Read(example_.layout, kSignMomentum)->pending.has_value());
}

TEST_F(StateFileTest, CutShortAnywhereItIsDamaged) {
  example_.Step();
  const std::string bytes = Write();
  ASSERT_TRUE(ReadAll(bytes).ok());
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(ReadAll(bytes.substr(0, size)).code(), absl::StatusCode::kDataLoss) << size;
  EXPECT_EQ(ReadAll(bytes + "x").code(), absl::StatusCode::kDataLoss);
}

TEST_F(StateFileTest, WithAnyByteFlippedItIsDamaged) {
  example_.Step();
  const std::string bytes = Write();
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    EXPECT_EQ(ReadAll(flipped).code(), absl::StatusCode::kDataLoss) << i;
  }
}

TEST_F(StateFileTest, TellsNewerVersion) {
  std::string bytes = Write();
  uint32_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data() + 12, sizeof(header_bytes));
  bytes[8] = 4;
  const uint64_t checksum = Xxh3(absl::string_view(bytes).substr(0, 16 + header_bytes));
  std::memcpy(bytes.data() + 16 + header_bytes, &checksum, sizeof(checksum));
  EXPECT_EQ(ReadAll(bytes).code(), absl::StatusCode::kUnimplemented);
}

// A file of an earlier program has fewer numbers before its one sender.
void MakeEarlier(char version, size_t missing, std::string* bytes) {
  uint32_t fields = 0;
  std::memcpy(&fields, bytes->data() + 12, sizeof(fields));
  constexpr size_t kSenders = 4 + 8;
  bytes->erase(16 + fields - kSenders - missing, missing);
  fields -= static_cast<uint32_t>(missing);
  (*bytes)[8] = version;
  std::memcpy(bytes->data() + 12, &fields, sizeof(fields));
  const uint64_t checksum = Xxh3(absl::string_view(*bytes).substr(0, 16 + fields));
  std::memcpy(bytes->data() + 16 + fields, &checksum, sizeof(checksum));
}

TEST_F(StateFileTest, FilesOfEarlierVersionsHaveFewerNumbers) {
  example_.Step();
  example_.state.senders = {11};
  example_.state.local_steps = 7;
  constexpr size_t kPending = 4 + 8, kLocalSteps = 8;
  for (const char version : {1, 2}) {
    std::string bytes = Write();
    MakeEarlier(version, version == 1 ? kPending + kLocalSteps : kPending, &bytes);
    const absl::StatusOr<StateReader> reader = StateReader::FromBytes(bytes);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ(reader->state().local_steps, version == 1 ? 0u : 7u);
    EXPECT_EQ(reader->state().pending_steps, 0u);
    EXPECT_EQ(reader->state().pending_samples, 0u);
    EXPECT_EQ(reader->state().senders, std::vector<uint64_t>{11});
    EXPECT_TRUE(reader->Read(example_.layout, kSignMomentum).ok());
  }
}

TEST_F(StateFileTest, IsOfOneLayout) {
  Write();
  const absl::StatusOr<StateReader> reader = StateReader::Open(path_);
  const Layout shapes = *Layout::Create(*Manifest::Create({{"a", {2, 3}}, {"b", {5}}}), 1);
  const Layout segments = *Layout::Create(example_.layout.manifest(), 2);
  EXPECT_EQ(reader->Read(shapes, kSignMomentum).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(reader->CheckLayout(segments).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(reader->CheckLayout(example_.layout).ok());
}

// A file that somebody made, checksums and all: no position may lead beyond its block.
TEST_F(StateFileTest, RefusesPositionsThatNoBlockHas) {
  const std::vector<std::vector<uint16_t>> kBad = {{0, 4096}, {5, 5}, {6, 5}};
  for (const std::vector<uint16_t>& positions : kBad) {
    example_.Step();
    PendingUpdate pending = *example_.optimizer.pending();
    std::memcpy(pending.segments[1][0].data(), positions.data(),
                positions.size() * sizeof(positions[0]));
    example_.optimizer.Restore(TensorBuffer(example_.layout), pending);
    EXPECT_EQ(ReadAll(Write()).code(), absl::StatusCode::kDataLoss);
  }
}

TEST_F(StateFileTest, AbsenceIsNotFound) {
  EXPECT_EQ(StateReader::Open(path_).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace distro::worker
