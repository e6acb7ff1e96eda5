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
  session_->Update([&](SessionView& view) {
    view.next_round = next_round;
    view.following = true;
  });
  heartbeat_.Report(next_round, log_hash);
  subscription_ = std::make_unique<Subscription>(background_, connections_.download.get(),
                                                 queue_.get(), layout, next_round, log_hash);
  subscription_thread_ = std::thread([this] { subscription_->Run(); });
  upload_thread_ = std::thread([this] { uploader_.Run(); });
}

void RunningSession::Shutdown() {
  session_->End(absl::CancelledError("left the run"));
  queue_->Close(absl::CancelledError("left the run"), /*drop=*/true);
  for (std::thread* thread : {&heartbeat_thread_, &subscription_thread_, &upload_thread_}) {
    if (thread->joinable()) thread->join();
  }
}

}  // namespace distro
