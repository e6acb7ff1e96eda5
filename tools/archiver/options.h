// The validated options of an archiver process. Defaults of flags are here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/log.h"
#include "common/client/backoff.h"
#include "common/client/channel.h"
#include "tools/archiver/published_folders.h"

namespace distro::tools {

struct ArchiverOptions {
  // The aggregator's address, TLS and credentials. Required.
  ChannelOptions channel;
  // Folder for its own copy of the parameters. Required. Holds one snapshot, and a second while
  // that is replaced.
  std::string data_dir;
  // Where to publish Hugging Face folders, and how many to keep.
  PublishOptions publish;
  // Rounds between snapshots (and published folders); 0: whenever the results since the last one
  // have as many bytes as the parameters. With smaller values joiners start nearer the head and the
  // aggregator drops rounds sooner; each snapshot costs a pass over the parameters, two files of
  // their size, and an upload.
  uint64_t snapshot_interval_rounds = 0;
  // Whether to upload snapshots to the aggregator.
  bool upload_snapshots = true;
  // Threads of the replay. Larger values are faster up to the number of cores; the parameters do
  // not depend on it.
  int threads = 1;
  // File with one JSON line per round; empty: metrics.jsonl in `data_dir`. Limited to twice
  // kMaxRoundLineBytes.
  std::string metrics_file = {};
  // Ends when the round that was the head at the start is reached.
  bool once = false;
  // How long to wait for the first answer of an aggregator; 0: no limit. Smaller values report an
  // error sooner, but may not wait for an aggregator that is starting.
  absl::Duration connect_timeout = absl::Seconds(60);
  // As GrpcExchangeOptions::mirrors.
  std::vector<std::string> mirrors = {};
  // Address of /metrics, /healthz and /readyz; port 0 takes a free one and logs it.
  std::string http = "127.0.0.1:0";
  // Time between two requests for the aggregator's round. With larger values a lag is noticed
  // later.
  absl::Duration poll_interval = absl::Seconds(2);
  // A subscription that is behind the head is closed after this long without a frame. Larger values
  // wait longer on a dead connection.
  absl::Duration patience = absl::Seconds(30);
  // Delays between attempts.
  BackoffOptions backoff;
  LogLevel log_level = LogLevel::kInfo;

  // Takes the address from the invite of `channel`, if there is one. The statuses of
  // distro::TakeInvite; InvalidArgument: the invite is not for an archiver.
  absl::Status TakeInvite(absl::Time now);
  // InvalidArgument names the flag and the remedy.
  absl::Status Validate() const;
};

}  // namespace distro::tools
