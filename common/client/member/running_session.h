// A session with its threads: Heartbeat from its construction on, RoundFeed and Uploader from Follow on. They meet in
// Session only. One thread calls; Shutdown ends and joins the others.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "common/client/connection.h"
#include "common/client/follow/round_feed.h"
#include "common/client/member/background.h"
#include "common/client/member/heartbeat.h"
#include "common/client/member/uploader.h"
#include "common/exchange/event_queue.h"

namespace distro {

struct Connections {
  std::unique_ptr<Connection> control, upload, download;
};

class RunningSession {
 public:
  // `background.session` is `session`; the connections are borrowed.
  RunningSession(const Background& background, std::shared_ptr<Session> session,
                 std::shared_ptr<EventQueue> queue, const Connections& connections,
                 absl::Duration heartbeat_interval);
  ~RunningSession() { Shutdown(); }
  RunningSession(const RunningSession&) = delete;
  RunningSession& operator=(const RunningSession&) = delete;

  // Once. `layout` is borrowed.
  void Follow(const Layout* layout, RoundId next_round, uint64_t log_hash);
  bool following() const { return feed_ != nullptr; }

  // Ends and joins all threads. Idempotent.
  void Shutdown();

  const Background& background() const { return background_; }
  Session* session() { return session_.get(); }
  EventQueue* queue() { return queue_.get(); }
  Heartbeat* heartbeat() { return &heartbeat_; }
  Uploader* uploader() { return &uploader_; }

 private:
  // Constant after construction.
  const Background background_;
  const std::shared_ptr<Session> session_;
  const std::shared_ptr<EventQueue> queue_;
  const Connections& connections_;

  // Each has its own locking.
  Heartbeat heartbeat_;
  Uploader uploader_;
  std::unique_ptr<RoundFeed> feed_;

  std::thread heartbeat_thread_, upload_thread_;
};

}  // namespace distro
