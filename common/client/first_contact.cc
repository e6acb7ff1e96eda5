#include "common/client/first_contact.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_util.h"
#include "common/client/diagnosis.h"

namespace distro {
namespace {

constexpr absl::Duration kRemindEvery = absl::Minutes(1);
constexpr absl::Duration kLongestStep = absl::Seconds(10);
constexpr absl::Duration kShortestStep = absl::Seconds(1);

}  // namespace

FirstContact::FirstContact(const ChannelOptions& channel, absl::Duration timeout, Log* log,
                           const Clock* clock)
    : channel_(channel),
      timeout_(timeout),
      clock_(clock),
      reasons_("waiting for the aggregator", log, clock, kRemindEvery) {}

absl::Duration FirstContact::Left() const {
  if (answered_ || !begun_) return absl::InfiniteDuration();
  return std::max(absl::ZeroDuration(), *begun_ + timeout_ - clock_->MonotonicNow());
}

ProbeOptions FirstContact::Options(const std::function<bool()>& wanted) const {
  return {.channel = channel_,
          .step_timeout = std::clamp(Left(), kShortestStep, kLongestStep),
          .wanted = wanted,
          .clock = clock_};
}

absl::Status FirstContact::Explained(const absl::Status& status,
                                     const std::function<bool()>& wanted) const {
  return answered_ ? status : Explain(status, Options(wanted));
}

absl::Status FirstContact::Failed(const absl::Status& status, const std::function<bool()>& wanted) {
  if (!answered_ && !MayBeTheConnection(status))
    Answered();  // only an aggregator returns such a status
  if (answered_) {
    reasons_.Failed(status.ToString());
    return absl::OkStatus();
  }
  const absl::StatusOr<ConnectionLook> look = Diagnose(Options(wanted));
  if (!look.ok() && !absl::IsCancelled(look.status())) return look.status();
  if (!look.ok()) return absl::OkStatus();  // `wanted` is false
  if (!look->fault) {
    Answered();
    reasons_.Failed(status.ToString());
    return absl::OkStatus();
  }
  const absl::Status found = StatusOf(*look->fault);
  if (IsFinal(*look->fault)) return found;
  if (Left() == absl::ZeroDuration()) {
    return Annotate(found,
                    absl::StrCat("not within --connect_timeout ", absl::FormatDuration(timeout_)));
  }
  reasons_.Failed(found.message());
  return absl::OkStatus();
}

}  // namespace distro
