#include "common/client/diagnosis.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/client/channel.h"
#include "common/client/health.h"
#include "common/client/probe/fault_text.h"

namespace distro {

namespace {

// What a health check without an answer means.
ConnectionFault FaultOf(const ConnectionLook& look, const absl::Status& why) {
  if (look.proxy) return NotThroughProxy(look.address, *look.proxy, why, look.fault);
  return absl::IsUnimplemented(why) ? NoAggregator(look.address) : NoAnswer(look.address, why);
}

}  // namespace

absl::StatusOr<ConnectionLook> Diagnose(const ProbeOptions& options) {
  DISTRO_ASSIGN_OR_RETURN(const auto channel, OpenAnonymousChannel(options.channel));
  DISTRO_ASSIGN_OR_RETURN(ConnectionLook look, Probe(options));
  if (look.fault && !look.proxy) return look;
  const absl::Duration begin = Clock::Real()->MonotonicNow();
  // The probe tries all addresses at once, a channel one after the other: the first may be silent.
  const bool several = !look.proxy && look.ip_addresses.size() > 1;
  const absl::Duration another = several ? kConnectAttempt : absl::ZeroDuration();
  const absl::StatusOr<bool> serves =
      AskHealth(channel, options.step_timeout + another, options.wanted);
  if (absl::IsCancelled(serves.status())) return serves.status();
  const std::string message(serves.status().message());
  if (serves.ok()) {
    look.health = *serves ? "SERVING" : "NOT_SERVING";
    look.fault.reset();  // it was one of the way past the proxy
  } else {
    look.fault = FaultOf(look, serves.status());
  }
  look.steps.push_back({.name = "health",
                        .ok = serves.ok(),
                        .seen = serves.ok() ? look.health : message,
                        .took = Clock::Real()->MonotonicNow() - begin});
  return look;
}

bool MayBeTheConnection(const absl::Status& status) {
  if (!ReasonOf(status).empty()) return false;
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnimplemented:
      return true;
    default:
      return false;
  }
}

absl::Status Explain(const absl::Status& failed, const ProbeOptions& options) {
  if (!MayBeTheConnection(failed)) return failed;
  const absl::StatusOr<ConnectionLook> look = Diagnose(options);
  return look.ok() && look->fault ? StatusOf(*look->fault) : failed;
}

}  // namespace distro
