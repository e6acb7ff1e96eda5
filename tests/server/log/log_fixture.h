// A folder with a round log of the small layout, for the tests of this folder.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "common/base/file.h"
#include "common/base/log.h"
#include "gtest/gtest.h"
#include "server/log/round_log.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/round_builder.h"
#include "tests/testing/scratch_folder.h"
#include "tests/testing/server/faulty_disk.h"

namespace distro::server {

class LogFixture : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<RoundLog>> Open(int verify_payloads = 2) {
    return RoundLog::Open(Dir(), &layout_, verify_payloads, &disk_, &log_);
  }

  std::string Dir() const { return folder_.File("rounds"); }
  std::string Path(const std::string& name) const { return Dir() + "/" + name; }

  v1::StartHeader Start() const {
    v1::StartHeader start;
    start.set_run_id("run-1");
    const Sha256Digest& hash = layout_.manifest().hash();
    start.set_manifest_hash(std::string(hash.begin(), hash.end()));
    start.set_state_hash(5);
    return start;
  }

  // The next round of the log, written with its segments in reverse order.
  absl::Status Write(RoundLog* log) {
    const testing::BuiltRound round = Next(*log);
    auto writer = log->Begin(log->next_round());
    if (!writer.ok()) return writer.status();
    for (uint32_t i = layout_.segments(); i-- > 0;) {
      const absl::Status status = writer->AddSegment(SegmentId(i), round.payloads[i]);
      if (!status.ok()) return status;
    }
    return log->Commit(*std::move(writer), round.header_bytes());
  }

  testing::BuiltRound Next(const RoundLog& log) const {
    return testing::BuildRound(layout_, log.next_round(), log.HashBefore(log.next_round()));
  }

  // A log with a start record and some rounds.
  void Fill(int rounds) {
    auto log = Open();
    ASSERT_TRUE(log.ok()) << log.status();
    ASSERT_TRUE((*log)->WriteStart(Start()).ok());
    for (int i = 0; i < rounds; ++i) ASSERT_TRUE(Write(log->get()).ok());
  }

  int FilesThatEndWith(const std::string& suffix) const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(Dir())) {
      const std::string name = entry.path().filename().string();
      if (name.size() >= suffix.size() && name.ends_with(suffix)) ++count;
    }
    return count;
  }

  const Layout layout_ = testing::SmallLayout();
  testing::ScratchFolder folder_;
  testing::FaultyDisk disk_;
  testing::FakeClock clock_;
  Log log_{LogLevel::kError};
};

}  // namespace distro::server
