// The validated options of an archiver process. Defaults of flags are here.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/log.h"
#include "common/client/backoff.h"
#include "common/client/channel.h"
#include "tools/archiver/published_folders.h"

namespace distro::tools {

struct ArchiverOptions {
  // The aggregator and how to talk with it. Required.
  ChannelOptions channel;
  // Folder of its own copy of the parameters. Required. Holds two snapshots at most, while one
  // replaces the other.
  std::string data_dir;
  // Where Hugging Face folders are published, and how many stay.
  PublishOptions publish;
  // Rounds between snapshots (and published folders); 0: as soon as the results since the last one
  // have as many bytes as the parameters. Smaller values let joiners start nearer the head and the
  // aggregator drop rounds sooner; each costs a pass over the parameters, two files of them, and an
  // upload.
  uint64_t snapshot_interval_rounds = 0;
  // Whether snapshots are uploaded to the aggregator.
  bool upload_snapshots = true;
  // Threads that replay. Larger values are faster up to the number of cores; no bit depends on it.
  int threads = 1;
  // File for a JSON line a round; empty: metrics.jsonl in `data_dir`. Bounded to twice
  // kMaxRoundLineBytes.
  std::string metrics_file = {};
  // Ends once the round that is the head at the start is reached.
  bool once = false;
  // How long it looks for an aggregator that answers, before the first answer; 0: for ever. Smaller
  // values say sooner what is wrong, and do not wait for one that is starting.
  absl::Duration connect_timeout = absl::Seconds(60);
  // Address of /metrics, /healthz and /readyz; port 0 takes a free one and logs it.
  std::string http = "127.0.0.1:0";
  // Time between questions where the aggregator stands. Larger values see a lag later.
  absl::Duration poll_interval = absl::Seconds(2);
  // A subscription that lags the head is given up after this long without a frame. Larger values
  // wait longer on a dead connection.
  absl::Duration patience = absl::Seconds(30);
  // Delays before another attempt.
  BackoffOptions backoff;
  LogLevel log_level = LogLevel::kInfo;

  // Takes the address from the invite of `channel`, if there is one. The statuses of
  // distro::TakeInvite; InvalidArgument: it is not an archiver's.
  absl::Status TakeInvite(absl::Time now);
  // InvalidArgument names the flag and the remedy.
  absl::Status Validate() const;
};

}  // namespace distro::tools
