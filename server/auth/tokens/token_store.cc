#include "server/auth/tokens/token_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/utc_time.h"

namespace distro::server {

namespace {

absl::StatusOr<TokenTable> Read(const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kMaxTokensFileBytes));
  absl::StatusOr<TokenTable> table = TokenTable::Parse(text);
  if (!table.ok()) return Annotate(table.status(), path);
  return table;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenStore>> TokenStore::Open(const std::string& path,
                                                             const Clock* clock, Log* log,
                                                             AuthObserver* observer) {
  std::unique_ptr<TokenStore> store(new TokenStore(path, clock, log, observer));
  DISTRO_RETURN_IF_ERROR(store->table_.Start());
  return store;
}

TokenStore::TokenStore(std::string path, const Clock* clock, Log* log, AuthObserver* observer)
    : clock_(clock),
      table_(
          {path}, [path] { return Read(path); },
          [path, log, observer](const absl::StatusOr<std::shared_ptr<const TokenTable>>& table) {
            if (table.ok()) {
              log->Info("tokens reloaded", {{"file", path}, {"tokens", (*table)->size()}});
            } else {
              log->Error("tokens not reloaded: the previous ones stay valid",
                         {{"reason", table.status()}});
            }
            observer->OnCredentialsReloaded("tokens", table.ok());
          },
          clock) {}

absl::StatusOr<TokenOwner> TokenStore::Find(absl::string_view token) {
  std::optional<TokenOwner> owner = table_.Get()->Find(token);
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

}  // namespace distro::server
