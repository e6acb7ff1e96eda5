#include "worker/state/state_dir.h"

#include <gtest/gtest.h>

#include "common/base/file.h"
#include "tests/testing/scratch_folder.h"
#include "tests/worker/state/state_example.h"

namespace distro::worker {
namespace {

class StateDirTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<StateDir>> Open() { return StateDir::Open(dir_, &log_); }
  std::string State() const { return dir_ + "/worker.state"; }

  StateExample example_;
  testing::ScratchFolder folder_;
  const std::string dir_ = folder_.File("a/state");
  std::string lines_;
  Log log_{LogLevel::kInfo, Clock::Real(),
           [this](absl::string_view line) { lines_.append(line.data(), line.size()); }};
};

TEST_F(StateDirTest, HasOneWorkerAtATime) {
  auto first = Open();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kInvalidArgument);
  first->reset();
  EXPECT_TRUE(Open().ok());
}

TEST_F(StateDirTest, KeepsTheFirstNameThatItIsGiven) {
  EXPECT_EQ(*(*Open())->KeepName("host-1"), "host-1");
  EXPECT_EQ(*(*Open())->KeepName("host-2"), "host-1");
  ASSERT_TRUE(WriteFileAtomically(dir_ + "/name", "No Name").ok());
  EXPECT_EQ((*Open())->KeepName("host-2").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(StateDirTest, IsEmptyAtFirst) {
  const auto state = (*Open())->Load();
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_FALSE(state->has_value());
}

TEST_F(StateDirTest, LoadsWhatWasSaved) {
  const auto dir = *Open();
  ASSERT_TRUE(dir->Save(example_.state, example_.optimizer.elements(), example_.shards()).ok());
  const auto state = dir->Load();
  ASSERT_TRUE(state.ok() && state->has_value()) << state.status();
  EXPECT_EQ((*state)->state().run_id, "run-1");
}

TEST_F(StateDirTest, SetsDamagedStateAside) {
  const auto dir = *Open();
  ASSERT_TRUE(WriteFileAtomically(State(), "DSTROWSTxxxx").ok());
  const auto state = dir->Load();
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_FALSE(state->has_value());
  EXPECT_EQ(*ReadFile(State() + ".aside"), "DSTROWSTxxxx");
  EXPECT_EQ(ReadFile(State()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(lines_.find("set aside"), std::string::npos) << lines_;
}

}  // namespace
}  // namespace distro::worker
