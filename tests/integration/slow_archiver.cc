#include "tests/integration/slow_archiver.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <variant>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mapped_file.h"
#include "common/base/status_macros.h"
#include "common/client/first_contact.h"
#include "common/client/follow/head_watch.h"
#include "common/client/follow/round_feed.h"
#include "common/client/follow/snapshot_fetch.h"
#include "tools/archiver/aggregator_client.h"
#include "tools/archiver/archive.h"

namespace distro::testing {
namespace {

// The newest snapshot of the aggregator is then the replica's.
absl::Status Store(const std::string& run_id, tools::AggregatorClient* client,
                   FirstContact* contact, tools::ArchiveFolder* folder, tools::Archive* archive) {
  DISTRO_RETURN_IF_ERROR(folder->Save(*archive->replica, archive->log, &archive->state));
  v1::UploadSnapshotHeader header;
  header.set_run_id(run_id);
  *header.mutable_snapshot() = archive->state.snapshot;
  const uint64_t round = header.snapshot().round();
  DISTRO_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(folder->SnapshotPath(round)));
  DISTRO_RETURN_IF_ERROR(client->SendSnapshot(header, file.bytes()));
  DISTRO_ASSIGN_OR_RETURN(const v1::GetRunResponse run,
                          AwaitRun(client->follower(), client->control(), contact));
  EXPECT_EQ(run.snapshots(0).SerializeAsString(), header.snapshot().SerializeAsString());
  return absl::OkStatus();
}

absl::Status Archive(const ChannelOptions& channel, const std::string& path, uint64_t interval) {
  Log log(LogLevel::kError);
  ClientState state;
  TransferMeter meter;
  const Follower follower = {.state = &state,
                             .meter = &meter,
                             .log = &log,
                             .clock = Clock::Real(),
                             .backoff = {absl::Milliseconds(10), absl::Milliseconds(100)}};
  FirstContact contact(channel, absl::InfiniteDuration(), &log, Clock::Real());
  DISTRO_ASSIGN_OR_RETURN(const auto client, tools::AggregatorClient::Open(channel, follower));
  DISTRO_ASSIGN_OR_RETURN(const auto folder, tools::ArchiveFolder::Open(path));
  DISTRO_ASSIGN_OR_RETURN(const v1::GetRunResponse run,
                          AwaitRun(follower, client->control(), &contact));
  const auto fetch = [&](const v1::SnapshotInfo& snapshot, const std::string& to) {
    return FetchSnapshot(follower, client->snapshots(), snapshot, to);
  };
  DISTRO_ASSIGN_OR_RETURN(tools::Archive archive,
                          tools::OpenArchive(run, folder->Load(), 1, folder.get(), fetch, &log));
  const RoundId rounds(run.config().rounds());
  EventQueue queue(2, UINT64_MAX);
  const RoundFeed feed(follower, client->rounds(), archive.layout.get(),
                       {.run_id = run.run_id(),
                        .next_round = archive.replica->next_round(),
                        .log_hash = archive.replica->log_hash(),
                        .rounds = rounds},
                       &queue);
  uint64_t last = 0;
  while (archive.replica->next_round() < rounds) {
    DISTRO_ASSIGN_OR_RETURN(const RoundEvent event, queue.Pop());
    const CommittedRound& round = std::get<CommittedRound>(event);
    // The parameters before the round, now that its record confirms their hash.
    const uint64_t number = round.round().value();
    if (number % interval == 1) {
      DISTRO_RETURN_IF_ERROR(Store(run.run_id(), client.get(), &contact, folder.get(), &archive));
      last = number;
    }
    DISTRO_RETURN_IF_ERROR(archive.replica->Apply(round));
  }
  // After a kill the next start drops the remaining payloads.
  while (!::testing::Test::HasFailure()) {
    DISTRO_ASSIGN_OR_RETURN(const v1::GetRunResponse now,
                            AwaitRun(client->follower(), client->control(), &contact));
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
