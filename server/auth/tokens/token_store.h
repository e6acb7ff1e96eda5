// The tokens file, read again when it changes; a file that is damaged then changes nothing but a
// log line and a metric. Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "server/auth/tokens/file_watch.h"
#include "server/auth/tokens/tokens_file.h"

namespace distro::server {

// What the aggregator's credentials do, for metrics. Thread-safe, quick.
class AuthObserver {
 public:
  virtual ~AuthObserver() = default;
  // `reason`: unauthenticated, role, wrong_name, or limit: this caller's calls come too fast.
  virtual void OnCallRefused(absl::string_view reason) = 0;
  // A file that changed was read; `file`: certificate or tokens. Not ok: what was there before goes
  // on.
  virtual void OnCredentialsReloaded(absl::string_view file, bool ok) = 0;
};

class TokenStore {
 public:
  // All but the path are borrowed. InvalidArgument names the line; otherwise as ReadFile.
  static absl::StatusOr<std::unique_ptr<TokenStore>> Open(const std::string& path,
                                                          const Clock* clock, Log* log,
                                                          AuthObserver* observer);

  // Whose token it is by the file as it was at most a second ago; nobody's once it has expired.
  std::optional<TokenOwner> Find(absl::string_view token);

 private:
  TokenStore(std::string path, const Clock* clock, Log* log, AuthObserver* observer);
  absl::StatusOr<TokenTable> Read() const;
  void Reload() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string path_;
  const Clock* const clock_;
  Log* const log_;
  AuthObserver* const observer_;

  absl::Mutex mu_;
  FileWatch watch_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const TokenTable> table_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::server
