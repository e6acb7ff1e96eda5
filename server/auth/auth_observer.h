// What the aggregator's credentials do, for metrics. Thread-safe, quick.
#pragma once

#include "absl/strings/string_view.h"

namespace distro::server {

class AuthObserver {
 public:
  virtual ~AuthObserver() = default;
  // `reason`: unauthenticated, role, wrong_name, or limit: this caller's calls come too fast.
  virtual void OnCallRefused(absl::string_view reason) = 0;
  // A file that changed was read; `file`: certificate or tokens. Not ok: what was there before goes on.
  virtual void OnCredentialsReloaded(absl::string_view file, bool ok) = 0;
};

}  // namespace distro::server
