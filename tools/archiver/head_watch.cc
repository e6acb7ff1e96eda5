#include "tools/archiver/head_watch.h"

#include <utility>

namespace distro::tools {

HeadWatch::HeadWatch(AggregatorClient* client, absl::Duration interval,
                     std::function<void(const v1::GetRunResponse&)> observer)
    : client_(client),
      interval_(interval),
      observer_(std::move(observer)),
      thread_([this] { Run(); }) {}

HeadWatch::~HeadWatch() {
  done_.Notify();
  thread_.join();
}

void HeadWatch::Run() {
  do {
    const absl::StatusOr<v1::GetRunResponse> run = client_->GetRun();
    if (run.ok() && !done_.HasBeenNotified()) observer_(*run);
  } while (!done_.WaitForNotificationWithTimeout(interval_));
}

}  // namespace distro::tools
