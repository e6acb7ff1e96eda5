#include "tests/integration/slow_archiver.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "tools/archiver/aggregator_client.h"
#include "tools/archiver/archive.h"
#include "tools/archiver/round_feed.h"
#include "tools/archiver/stopper.h"

namespace distro::testing {
namespace {

constexpr BackoffOptions kBackoff = {absl::Milliseconds(10), absl::Milliseconds(100)};

// The newest snapshot of the aggregator is then the replica's.
absl::Status Store(const std::string& run_id, tools::AggregatorClient* client,
                   tools::ArchiveFolder* folder, tools::Archive* archive) {
  DISTRO_RETURN_IF_ERROR(folder->Save(*archive->replica, &archive->state));
  v1::UploadSnapshotHeader header;
  header.set_run_id(run_id);
  *header.mutable_snapshot() = archive->state.snapshot;
  const uint64_t round = header.snapshot().round();
  DISTRO_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(folder->SnapshotPath(round)));
  DISTRO_RETURN_IF_ERROR(client->SendSnapshot(header, file.bytes()));
  DISTRO_ASSIGN_OR_RETURN(const v1::GetRunResponse run, client->AwaitRun(0));
  EXPECT_EQ(run.snapshots(0).SerializeAsString(), header.snapshot().SerializeAsString());
  return absl::OkStatus();
}

absl::Status Archive(const ChannelOptions& channel, const std::string& path, uint64_t interval) {
  Log log(LogLevel::kError);
  tools::Stopper stopper;
  DISTRO_ASSIGN_OR_RETURN(const auto client, tools::AggregatorClient::Open(
                                                 channel, kBackoff, &stopper, &log, Clock::Real()));
  DISTRO_ASSIGN_OR_RETURN(const auto folder, tools::ArchiveFolder::Open(path));
  DISTRO_ASSIGN_OR_RETURN(const v1::GetRunResponse run, client->AwaitRun(0));
  const auto fetch = [&](const v1::SnapshotInfo& snapshot, const std::string& to) {
    return client->FetchSnapshot(snapshot, to);
  };
  DISTRO_ASSIGN_OR_RETURN(tools::Archive archive,
                          tools::OpenArchive(run, folder->Load(), 1, folder.get(), fetch, &log));
  const RoundId rounds(run.config().rounds());
  tools::RoundFeed feed({.run_id = run.run_id(),
                         .next_round = archive.replica->next_round(),
                         .log_hash = archive.replica->log_hash(),
                         .epoch = EpochId(run.epoch()),
                         .rounds = rounds},
                        {.client = client.get(),
                         .layout = archive.layout.get(),
                         .stopper = &stopper,
                         .log = &log,
                         .clock = Clock::Real()});
  uint64_t last = 0;
  while (archive.replica->next_round() < rounds) {
    DISTRO_ASSIGN_OR_RETURN(const CommittedRound round, feed.Next());
    // The parameters before the round, now that its record vouches for them.
    const uint64_t number = round.round().value();
    if (number % interval == 1) {
      DISTRO_RETURN_IF_ERROR(Store(run.run_id(), client.get(), folder.get(), &archive));
      last = number;
    }
    DISTRO_RETURN_IF_ERROR(archive.replica->Apply(round));
  }
  // After a kill the next start drops what is left.
  while (!::testing::Test::HasFailure()) {
    DISTRO_ASSIGN_OR_RETURN(const v1::GetRunResponse now, client->AwaitRun(0));
    if (now.first_round() == last - interval) break;
  }
  return absl::OkStatus();
}

}  // namespace

void ArchiveSlowly(const ChannelOptions& channel, const std::string& folder, uint64_t interval) {
  const absl::Status status = Archive(channel, folder, interval);
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace distro::testing
