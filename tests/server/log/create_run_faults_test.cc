// Every operation of creating a run, and of a start, fails or is the last one before a kill: there
// is the whole run or none.
#include <errno.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/model/checkpoint/hf_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/run_store.h"
#include "tests/server/log/log_fixture.h"

namespace distro::server {
namespace {

using testing::DiskCall;

class CreateRunFaultsTest : public LogFixture {
 protected:
  void SetUp() override {
    ASSERT_TRUE(
        WriteCheckpointFolder(folder_.File("model"), "{}", layout_, TensorBuffer(layout_)).ok());
  }

  absl::StatusOr<std::unique_ptr<RunStore>> OpenStore(const std::string& dir, Disk* disk) {
    return RunStore::Open(dir, disk, &clock_, &log_);
  }

  absl::Status Create(RunStore* store) {
    v1::RunConfig config;
    config.set_name("test");
    config.set_rounds(10);
    config.set_method(v1::METHOD_SIGNS);
    config.set_sequence_length(8);
    config.set_samples_per_worker(1);
    config.set_workers(v1::WORKERS_PYTHON);  // their model is nobody else's
    return store->CreateRunFromFolder(config, folder_.File("model"));
  }

  std::string Data() const { return folder_.File("data"); }
};

TEST_F(CreateRunFaultsTest, RetriesCreation) {
  int failures = 0;
  for (const bool half_done : {false, true}) {
    for (int n = 0;; ++n) {
      SCOPED_TRACE(n);
      std::filesystem::remove_all(Data());
      auto store = *OpenStore(Data(), &disk_);
      disk_.Fail({.error_number = ENOSPC, .after = n, .times = 1, .half_done = half_done});
      const size_t before = disk_.calls().size();
      const absl::Status status = Create(store.get());
      const bool reached = disk_.calls().size() - before > static_cast<size_t>(n);
      disk_.Heal();
      if (!status.ok()) {
        ++failures;
        EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
        EXPECT_EQ(ReasonOf(status), "disk");
        EXPECT_FALSE(store->has_run());
        ASSERT_TRUE(Create(store.get()).ok());
      }
      const std::string run_id = store->run()->run_id;
      store.reset();
      store = *OpenStore(Data(), &disk_);
      EXPECT_EQ(store->run()->run_id, run_id);
      if (!reached) break;
    }
  }
  EXPECT_GE(failures, 30);
}

TEST_F(CreateRunFaultsTest, LeavesRunOrNothingAfterKill) {
  auto store = *OpenStore(Data(), &disk_);
  std::vector<std::string> copies;
  disk_.SetHook([&](const DiskCall&, uint64_t n) {
    copies.push_back(folder_.File(absl::StrCat("killed", n)));
    std::filesystem::copy(Data(), copies.back(), std::filesystem::copy_options::recursive);
  });
  ASSERT_TRUE(Create(store.get()).ok());
  disk_.SetHook(nullptr);
  bool created = false;
  for (const std::string& copy : copies) {
    SCOPED_TRACE(copy);
    auto again = OpenStore(copy, Disk::Real());
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_GE((*again)->has_run(), created);
    created = (*again)->has_run();
    if (created) {
      EXPECT_EQ((*again)->run()->run_id, store->run()->run_id);
    }
    EXPECT_TRUE(Create(again->get()).ok());
  }
  EXPECT_TRUE(created);
}

// A start that cannot write must not serve; the next one can.
TEST_F(CreateRunFaultsTest, RetriesStart) {
  std::string run_id;
  EpochId epoch;
  {
    auto store = *OpenStore(Data(), &disk_);
    ASSERT_TRUE(Create(store.get()).ok());
    run_id = store->run()->run_id;
    epoch = store->epoch();
  }
  for (int n = 0;; ++n) {
    disk_.FailNth(n, EROFS);
    const size_t before = disk_.calls().size();
    const absl::Status status = OpenStore(Data(), &disk_).status();
    const bool reached = disk_.calls().size() - before > static_cast<size_t>(n);
    disk_.Heal();
    EXPECT_EQ(status.code(), reached ? absl::StatusCode::kUnavailable : absl::StatusCode::kOk);
    auto store = OpenStore(Data(), &disk_);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ((*store)->run()->run_id, run_id);
    EXPECT_GT((*store)->epoch(), epoch);
    epoch = (*store)->epoch();
    if (!reached) break;
  }
}

}  // namespace
}  // namespace distro::server
