// Looks up tokens in the tokens file, which a thread reloads when it changes. A file that is
// invalid, or whose disk does not answer, is logged and counted, and the old tokens stay valid.
// Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/reloaded_files.h"
#include "server/auth/tokens/tokens_file.h"

namespace distro::server {

// Receives authentication events, for metrics. Implementations are thread-safe and quick.
class AuthObserver {
 public:
  virtual ~AuthObserver() = default;
  // `reason`: unauthenticated, role, wrong_name, or limit (the caller exceeds its call rate).
  virtual void OnCallRefused(absl::string_view reason) = 0;
  // A changed file was read; `file`: certificate or tokens. Not ok: the old content stays in use,
  // also because the disk does not answer.
  virtual void OnCredentialsReloaded(absl::string_view file, bool ok) = 0;
};

class TokenStore {
 public:
  // All but the path are borrowed. InvalidArgument names the line; otherwise as ReadFile.
  static absl::StatusOr<std::unique_ptr<TokenStore>> Open(const std::string& path,
                                                          const Clock* clock, Log* log,
                                                          AuthObserver* observer);

  // The token's owner, by the file as last read: never waits for the disk. Unauthenticated, with a
  // message for the caller: unknown, or expired by this machine's clock.
  absl::StatusOr<TokenOwner> Find(absl::string_view token);

  // Why the file's tokens are not in use (Reloaded::problem).
  absl::Status problem() { return table_.problem(); }

 private:
  TokenStore(std::string path, const Clock* clock, Log* log, AuthObserver* observer);

  const Clock* const clock_;
  Reloaded<TokenTable> table_;
};

}  // namespace distro::server
