#include "server/auth/tokens/token_store.h"

#include <utility>

#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"

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
  DISTRO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path_, kMaxTokensFileBytes));
  absl::StatusOr<TokenTable> table = TokenTable::Parse(text);
  if (!table.ok()) return Annotate(table.status(), path_);
  return table;
}

std::optional<TokenOwner> TokenStore::Find(absl::string_view token) {
  std::shared_ptr<const TokenTable> table;
  {
    absl::MutexLock lock(&mu_);
    if (watch_.Changed()) Reload();
    table = table_;
  }
  const std::optional<TokenOwner> owner = table->Find(token);
  return owner.has_value() && clock_->WallNow() > owner->expires ? std::nullopt : owner;
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
