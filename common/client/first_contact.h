// Bounds the first attempts of a client to reach its aggregator, and reports them: a wrong flag
// ends them at once, an aggregator that is about to start is waited for until --connect_timeout,
// and an aggregator that was reached once is waited for without end.
//
//   FirstContact contact(channel, absl::Seconds(60), log, clock);
//   contact.Begin();
//   while (true) {
//     const absl::Status status = Call();
//     if (status.ok()) { contact.Answered(); break; }
//     DISTRO_RETURN_IF_ERROR(contact.Failed(status, [&] { return !state->ended(); }));
//     state->Sleep(std::min(backoff.Next(), contact.Left()));
//   }
//
// Blocking; for one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/reason_log.h"
#include "common/client/options/channel_options.h"
#include "common/client/probe/probe.h"

namespace distro {

class FirstContact {
 public:
  // `timeout` counts from the first Begin; infinite: for ever. `log` and `clock` are borrowed.
  FirstContact(const ChannelOptions& channel, absl::Duration timeout, Log* log, const Clock* clock);

  // Calls are about to be made.
  void Begin() {
    if (!begun_) begun_ = clock_->MonotonicNow();
  }

  // A call failed, after Begin. OK: it is worth another attempt, and the log says why it waits.
  // Otherwise what the client ends with, one of connection_fault.h. Looks at the connection, some
  // seconds at the most; `wanted` false ends that, with OK.
  absl::Status Failed(const absl::Status& status, const std::function<bool()>& wanted);

  // What a client ends with whose call failed for good: `status`, or what was met in the place of
  // an aggregator. Looks as above.
  absl::Status Explained(const absl::Status& status, const std::function<bool()>& wanted) const;

  // From now on no failure ends the client.
  void Answered() { answered_ = true; }

  // Until the next attempt is the last.
  absl::Duration Left() const;

 private:
  ProbeOptions Options(const std::function<bool()>& wanted) const;

  // Constant after construction.
  const ChannelOptions channel_;
  const absl::Duration timeout_;
  const Clock* const clock_;

  ReasonLog reasons_;
  bool answered_ = false;
  std::optional<absl::Duration> begun_;  // monotonic
};

}  // namespace distro
