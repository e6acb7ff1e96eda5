// Publishes the parameters of a run as Hugging Face folders, and runs the publish command for each
// folder, on a thread of its own. Of the folders that wait for the command, the newest is kept.
//
//   Publisher publisher(&run, {.options = &options.publish, ...});
//   publisher.Publish(replica, companions);  // between rounds
//   publisher.AwaitIdle();
//   absl::Status status = publisher.LastStatus();
//
// All functions are called on one thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/base/process/shell_command.h"
#include "common/client/client_state.h"
#include "common/model/checkpoint/companions.h"
#include "distro/v1/admin.pb.h"
#include "kernels/replica/replica.h"
#include "tools/archiver/background_queue.h"
#include "tools/archiver/metrics.h"
#include "tools/archiver/published_folders.h"

namespace distro::tools {

class Publisher {
 public:
  struct Context {
    const PublishOptions* options;
    const ClientState* state;  // when it has ended, no command is started
    ArchiverMetrics* metrics;
    Log* log;
    const Clock* clock;
    ShellCommand* command = nullptr;  // optional
  };

  // `run` and everything in `context` are borrowed.
  Publisher(const v1::GetRunResponse* run, Context context);

  // Publishes a folder and hands it to the command. Does nothing if no folder is configured. A
  // failure is logged, counted and kept for LastStatus.
  void Publish(const Replica& replica, const Companions& companions);

  // Blocks until no command waits or runs.
  void AwaitIdle() { folders_.AwaitIdle(); }

  // Of the last folder: an error if it was not published, or if the last command failed. The
  // message says what to do. Call it when idle.
  absl::Status LastStatus() const;

 private:
  struct Folder {
    RoundId round;
    uint64_t state_hash = 0;
  };

  void RunCommand(const Folder& folder);  // on the queue's thread

  // Constant after construction.
  const v1::GetRunResponse* const run_;
  const Context context_;

  RoundId last_round_;
  absl::Status last_status_;

  std::atomic<uint64_t> round_in_use_ = 0;    // the folder of the running command; 0: none
  std::atomic<bool> command_failed_ = false;  // at its last run
  BackgroundQueue<Folder> folders_;
};

}  // namespace distro::tools
