// Looks up tokens in the tokens file, and reloads it when it changes. An invalid file is logged and
// counted, and the old tokens stay valid. Thread-safe.
#pragma once

#include <memory>
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

// Receives authentication events, for metrics. Implementations are thread-safe and quick.
class AuthObserver {
 public:
  virtual ~AuthObserver() = default;
  // `reason`: unauthenticated, role, wrong_name, or limit (the caller exceeds its call rate).
  virtual void OnCallRefused(absl::string_view reason) = 0;
  // A changed file was read; `file`: certificate or tokens. Not ok: the old content stays in use.
  virtual void OnCredentialsReloaded(absl::string_view file, bool ok) = 0;
};

class TokenStore {
 public:
  // All but the path are borrowed. InvalidArgument names the line; otherwise as ReadFile.
  static absl::StatusOr<std::unique_ptr<TokenStore>> Open(const std::string& path,
                                                          const Clock* clock, Log* log,
                                                          AuthObserver* observer);

  // The token's owner, by the file as of at most a second ago. Unauthenticated, with a message for
  // the caller: unknown, or expired by this machine's clock.
  absl::StatusOr<TokenOwner> Find(absl::string_view token);

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
