// Which of several aggregators on one bucket serves the run: the one that raised the epoch last. It
// writes the object `leader` again and again; one that waits takes over when the object stays as it
// is. This decides only when somebody tries: the conditions of BucketDisk keep a second writer out,
// whatever the clocks and the network do.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/steady_cond_var.h"
#include "common/net/s3/s3_client.h"

namespace distro::server {

// The status "fenced": another process leads. `url` is that of the object that says so.
absl::Status FencedError(absl::string_view url);

// OK if the object `epoch` has this SHA-256, or `sha256` is empty; otherwise "fenced". The statuses
// of S3Client.
absl::Status CheckEpoch(S3Client* bucket, const std::string& sha256);

struct LeaderOptions {
  // How often the object `leader` is written; 0: never.
  absl::Duration interval = absl::ZeroDuration();
  // So long without an answer of the bucket, and another process may lead; 0: none waits.
  absl::Duration patience = absl::ZeroDuration();
  // Called at most once, from another thread: "fenced", or reason "disk" after `patience`.
  std::function<void(absl::Status)> on_fenced = nullptr;
};

// Writes `leader` from a thread of its own.
class LeaderHeartbeat {
 public:
  // `epoch_sha256` is the SHA-256 of the own epoch, empty until it is raised. `log` is borrowed.
  LeaderHeartbeat(const S3Client& bucket, std::function<std::string()> epoch_sha256,
                  LeaderOptions options, Log* log);
  // Removes the object if this process leads, so that one that waits takes over at once.
  ~LeaderHeartbeat();
  LeaderHeartbeat(const LeaderHeartbeat&) = delete;
  LeaderHeartbeat& operator=(const LeaderHeartbeat&) = delete;

 private:
  void Run();

  // Of its own, so that the last request is made although the others are cancelled.
  const std::unique_ptr<S3Client> bucket_;
  const std::function<std::string()> epoch_sha256_;
  const LeaderOptions options_;
  Log* const log_;
  std::string written_;  // of the thread, and of the destructor after it
  SteadyNotification stopping_;
  std::thread thread_;
};

// Waits until nobody leads: the object `leader` is not there, or has not changed for `silence`.
// Then writes the object, which only one of several can do. Meanwhile it keeps a copy of the run in
// `data_dir`, and holds the folder's lock, so that taking over is quick. Faults of the bucket are
// logged and tried again. Cancelled: `cancelled` was true. FailedPrecondition: another process uses
// the folder. Blocking.
absl::Status AwaitLeadership(S3Client* bucket, const std::string& data_dir, absl::Duration silence,
                             const std::function<bool()>& cancelled, const Clock* clock, Log* log);

}  // namespace distro::server
