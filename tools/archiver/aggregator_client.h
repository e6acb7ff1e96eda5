// An archiver's connections to its aggregator. Control, subscription and snapshots each have one,
// so that a snapshot never delays a round. Thread-safe. Blocking; all calls end when the follower's
// state ends.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/client/connection.h"
#include "common/client/follow/follower.h"
#include "common/client/options/channel_options.h"
#include "distro/v1/session.pb.h"
#include "distro/v1/snapshot.pb.h"

namespace distro::tools {

class AggregatorClient {
 public:
  // The objects in `follower` are borrowed. The statuses of OpenChannel.
  static absl::StatusOr<std::unique_ptr<AggregatorClient>> Open(const ChannelOptions& channel,
                                                                const Follower& follower);

  // Uploads until the snapshot is stored or refused; resumes an interrupted attempt. Waits if the
  // aggregator has not committed the snapshot's round yet ("no_reference").
  absl::Status SendSnapshot(const v1::UploadSnapshotHeader& header, absl::string_view bytes);
  // Repeats until the report is accepted or refused.
  absl::Status ReportState(const v1::ReportStateRequest& request);

  const Follower& follower() const { return follower_; }
  Connection* control() { return control_.get(); }
  Connection* rounds() { return rounds_.get(); }
  Connection* snapshots() { return snapshots_.get(); }

 private:
  explicit AggregatorClient(const Follower& follower) : follower_(follower) {}
  absl::Status SendOnce(const v1::UploadSnapshotHeader& header, absl::string_view bytes, bool waits,
                        uint64_t* sent);
  absl::Status ReportOnce(const v1::ReportStateRequest& request, bool waits);

  // Constant after construction.
  const Follower follower_;
  std::unique_ptr<Connection> control_, rounds_, snapshots_;
};

}  // namespace distro::tools
