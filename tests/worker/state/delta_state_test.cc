// The state file of a worker of the deltas method: three element arrays, three arrays of what is
// pending, and the count of local steps.
#include <cstring>
#include <string>

#include "common/base/file.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"
#include "tests/testing/worker/delta_worker.h"
#include "worker/state/state_file.h"

namespace distro::worker {
namespace {

using testing::DeltaWorker;

// As small as a Llama can be: the file is read as often as it has bytes.
const DecoderConfig kLlama = {.hidden_size = 2,
                              .layers = 1,
                              .heads = 1,
                              .kv_heads = 1,
                              .head_dim = 2,
                              .intermediate_size = 1,
                              .vocab_size = 2,
                              .max_positions = 4,
                              .rms_norm_eps = 1e-5f,
                              .rope = {.theta = 10000},
                              .tied_embeddings = false,
                              .initializer_range = 0.02f};
constexpr int kSegmentBlocks = 5;

class DeltaStateTest : public ::testing::Test {
 protected:
  std::string Write() {
    const WorkerState state{.run_id = "run-1",
                            .worker = "w",
                            .epoch = EpochId(6),
                            .next_round = RoundId(9),
                            .senders = {11},
                            .local_steps = worker_.rule->local_steps()};
    EXPECT_TRUE(WriteStateFile(path_, state, worker_.elements(), *worker_.optimizer).ok());
    return *ReadFile(path_);
  }
  absl::Status ReadAll(absl::string_view bytes) const {
    const absl::StatusOr<StateReader> reader = StateReader::FromBytes(bytes);
    if (!reader.ok()) return reader.status();
    return reader->Read(worker_.layout, worker_.kind).status();
  }
  static void ExpectBytes(const std::vector<absl::string_view>& read, const TensorBuffer& kept) {
    for (int i = 0; i < kept.tensors(); ++i) {
      const absl::Span<const float> expected = kept.tensor(i);
      ASSERT_EQ(read[i].size(), expected.size() * sizeof(float));
      EXPECT_EQ(std::memcmp(read[i].data(), expected.data(), read[i].size()), 0) << "tensor " << i;
    }
  }

  DeltaWorker worker_{kLlama, kSegmentBlocks};
  testing::ScratchFolder folder_;
  const std::string path_ = folder_.File("worker.state");
};

TEST_F(DeltaStateTest, GivesBackWhatWasWritten) {
  worker_.TakeRound(RoundId(8), /*seed=*/1);
  worker_.TakeRound(RoundId(9), /*seed=*/2);
  Write();
  const absl::StatusOr<StateReader> reader = StateReader::Open(path_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const absl::StatusOr<StateReader::Contents> contents = reader->Read(worker_.layout, worker_.kind);
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_EQ(contents->local_steps, 4u);
  ASSERT_EQ(contents->elements.size(), 3u);
  ExpectBytes(contents->elements[0], worker_.error);
  ExpectBytes(contents->elements[1], worker_.first);
  ExpectBytes(contents->elements[2], worker_.second);
  ASSERT_TRUE(contents->pending.has_value());
  EXPECT_EQ(contents->pending->round, RoundId(9));
  EXPECT_EQ(contents->pending->k, 3);
  ASSERT_GT(worker_.layout.segments(), 1u);
  EXPECT_EQ(contents->pending->segments, worker_.pending().segments);
}

TEST_F(DeltaStateTest, NeedsNoPending) {
  worker_.TakeRound(RoundId(9), /*seed=*/1);
  worker_.optimizer->ForgetPending();
  const std::string bytes = Write();
  const absl::StatusOr<StateReader> reader = StateReader::FromBytes(bytes);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const absl::StatusOr<StateReader::Contents> contents = reader->Read(worker_.layout, worker_.kind);
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_FALSE(contents->pending.has_value());
  ExpectBytes(contents->elements[0], worker_.error);
}

// A run never changes its method, so a file of the other method does not belong to it.
TEST_F(DeltaStateTest, IsDamagedToTheOtherMethod) {
  worker_.TakeRound(RoundId(9), /*seed=*/1);
  const std::string bytes = Write();
  const absl::StatusOr<StateReader> reader = StateReader::FromBytes(bytes);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->Read(worker_.layout, kSignMomentum).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(DeltaStateTest, CutShortAnywhereItIsDamaged) {
  worker_.TakeRound(RoundId(9), /*seed=*/1);
  const std::string bytes = Write();
  ASSERT_EQ(ReadAll(bytes), absl::OkStatus());
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(ReadAll(bytes.substr(0, size)).code(), absl::StatusCode::kDataLoss) << size;
  EXPECT_EQ(ReadAll(bytes + "x").code(), absl::StatusCode::kDataLoss);
}

TEST_F(DeltaStateTest, WithAnyByteFlippedItIsDamaged) {
  worker_.TakeRound(RoundId(9), /*seed=*/1);
  std::string bytes = Write();
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char whole = bytes[i];
    bytes[i] = static_cast<char>(whole ^ 0x10);
    EXPECT_EQ(ReadAll(bytes).code(), absl::StatusCode::kDataLoss) << i;
    bytes[i] = whole;
  }
}

// A file that somebody made, checksums and all.
TEST_F(DeltaStateTest, RefusesImpossiblePending) {
  worker_.TakeRound(RoundId(9), /*seed=*/1);
  PendingUpdate pending = worker_.pending();
  pending.segments[1][1][2] = 0;  // of a sign of the first block
  ASSERT_TRUE(worker_.rule->RestorePending(pending).ok());
  EXPECT_EQ(ReadAll(Write()).code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace distro::worker
