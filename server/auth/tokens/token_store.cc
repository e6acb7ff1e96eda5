#include "server/auth/tokens/token_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/utc_time.h"

namespace distro::server {

absl::StatusOr<std::unique_ptr<TokenStore>> TokenStore::Open(const std::string& path,
                                                             const Clock* clock, Log* log,
                                                             AuthObserver* observer) {
  std::unique_ptr<TokenStore> store(new TokenStore(path, clock, log, observer));
  DISTRO_ASSIGN_OR_RETURN(TokenTable table, store->Read());
  absl::MutexLock lock(&store->mu_);
  store->table_ = std::make_shared<const TokenTable>(std::move(table));
  return store;
}

TokenStore::TokenStore(std::string path, const Clock* clock, Log* log, AuthObserver* observer)
    : path_(std::move(path)),
      clock_(clock),
      log_(log),
      observer_(observer),
      watch_({path_}, clock) {}

absl::StatusOr<TokenTable> TokenStore::Read() const {
  DISTRO_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path_, kMaxTokensFileBytes));
  absl::StatusOr<TokenTable> table = TokenTable::Parse(text);
  if (!table.ok()) return Annotate(table.status(), path_);
  return table;
}

absl::StatusOr<TokenOwner> TokenStore::Find(absl::string_view token) {
  std::shared_ptr<const TokenTable> table;
  {
    absl::MutexLock lock(&mu_);
    if (watch_.Changed()) Reload();
    table = table_;
  }
  std::optional<TokenOwner> owner = table->Find(token);
  if (!owner) {
    return absl::UnauthenticatedError(
        "the token is not known: it was revoked, or is another run's");
  }
  const absl::Time now = clock_->WallNow();
  if (now <= owner->expires) return *std::move(owner);
  return absl::UnauthenticatedError(
      absl::StrCat("the token of ", owner->name, " expired at ", UtcText(owner->expires),
                   ", and the aggregator's clock says ", UtcText(now),
                   ": ask for a new invite (distroctl invite --replace), or have that clock set if "
                   "it is wrong"));
}

void TokenStore::Reload() {
  absl::StatusOr<TokenTable> table = Read();
  observer_->OnCredentialsReloaded("tokens", table.ok());
  if (!table.ok()) {
    log_->Error("tokens not reloaded: those of before stay valid", {{"reason", table.status()}});
    return;
  }
  log_->Info("tokens reloaded", {{"file", path_}, {"tokens", table->size()}});
  table_ = std::make_shared<const TokenTable>(*std::move(table));
}

}  // namespace distro::server
