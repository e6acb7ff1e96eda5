#include "common/client/member/running_session.h"

#include <utility>

namespace distro {

RunningSession::RunningSession(const Background& background, std::shared_ptr<Session> session,
                               std::shared_ptr<EventQueue> queue, const Connections& connections,
                               absl::Duration heartbeat_interval)
    : background_(background),
      session_(std::move(session)),
      queue_(std::move(queue)),
      connections_(connections),
      heartbeat_(background, connections.control.get(), heartbeat_interval),
      uploader_(background, connections.upload.get()),
      heartbeat_thread_([this] { heartbeat_.Run(); }) {}

void RunningSession::Follow(const Layout* layout, RoundId next_round, uint64_t log_hash) {
  feed_ = std::make_unique<RoundFeed>(background_.follower(), connections_.download.get(), layout,
                                      RoundFeed::Start{.run_id = session_->run_id(),
                                                       .worker = session_->worker(),
                                                       .next_round = next_round,
                                                       .log_hash = log_hash,
                                                       .rounds = session_->rounds()},
                                      queue_.get());
  heartbeat_.Report(next_round, log_hash);
  upload_thread_ = std::thread([this] { uploader_.Run(); });
}

void RunningSession::Shutdown() {
  session_->End(absl::CancelledError("left the run"));
  queue_->Close(absl::CancelledError("left the run"), /*drop=*/true);
  for (std::thread* thread : {&heartbeat_thread_, &upload_thread_}) {
    if (thread->joinable()) thread->join();
  }
  feed_.reset();
}

}  // namespace distro
