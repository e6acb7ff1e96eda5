#include "common/net/http/http_get.h"

#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace distro {

absl::StatusOr<HttpText> HttpGet(const std::string& address, const std::string& path,
                                 absl::Duration timeout, size_t max_bytes) {
  DISTRO_ASSIGN_OR_RETURN(const HostPort target, ParseHostPort(address));
  const absl::Duration end = Clock::Real()->MonotonicNow() + timeout;
  HttpClient client({.host = target.host, .port = target.port},
                    {.patience = timeout, .answer_patience = timeout, .cancelled = [end] {
                       return Clock::Real()->MonotonicNow() >= end;
                     }});
  absl::StatusOr<HttpText> text = client.GetText(path, max_bytes);
  if (!absl::IsCancelled(text.status())) return text;
  return absl::UnavailableError(
      absl::StrCat("http://", address, path, ": no answer within ", absl::FormatDuration(timeout)));
}

}  // namespace distro
