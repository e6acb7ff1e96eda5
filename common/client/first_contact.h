// Limits the first attempts of a client to reach its aggregator, and reports them. A wrong flag
// ends the client at once. An aggregator that is not up yet is awaited until --connect_timeout. One
// that has answered once is awaited without limit.
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
  // `timeout` counts from the first Begin; infinite: no limit. `log` and `clock` are borrowed.
  FirstContact(const ChannelOptions& channel, absl::Duration timeout, Log* log, const Clock* clock);

  // Call before the first attempt.
  void Begin() {
    if (!begun_) begun_ = clock_->MonotonicNow();
  }

  // Reports a failed call, after Begin, and diagnoses the connection, which takes up to some
  // seconds. OK: try again; the log says what the client waits for. Otherwise the status with which
  // the client ends, one of connection_fault.h. Stops with OK once `wanted` returns false.
  absl::Status Failed(const absl::Status& status, const std::function<bool()>& wanted);

  // Returns the status with which a client ends after a final failure: `status`, or the fault of
  // the connection if that is the cause. Diagnoses as above.
  absl::Status Explained(const absl::Status& status, const std::function<bool()>& wanted) const;

  // From now on no failure ends the client.
  void Answered() { answered_ = true; }

  // Time left until the last attempt.
  absl::Duration Left() const;
  // How long the next attempt may wait for a connection: Left, and 1 s for the last one.
  absl::Duration ConnectionWait() const { return std::max(Left(), absl::Seconds(1)); }

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
