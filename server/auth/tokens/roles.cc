#include "server/auth/tokens/roles.h"

#include <cstddef>

namespace distro::server {
namespace {

constexpr std::array<absl::string_view, kRoles.size()> kRoleNames = {"worker", "archiver", "viewer",
                                                                     "admin"};

constexpr bool RowsFollowTheEnum() {
  for (size_t i = 0; i < kRpcRules.size(); ++i)
    if (static_cast<size_t>(kRpcRules[i].rpc) != i) return false;
  return true;
}
static_assert(RowsFollowTheEnum());

const RpcRule& RuleOf(Rpc rpc) { return kRpcRules[static_cast<size_t>(rpc)]; }

}  // namespace

absl::string_view RoleName(Role role) { return kRoleNames[static_cast<size_t>(role)]; }

std::optional<Role> ParseRole(absl::string_view name) {
  for (const Role role : kRoles)
    if (RoleName(role) == name) return role;
  return std::nullopt;
}

bool MayCall(Role role, Rpc rpc) { return RuleOf(rpc).allowed[static_cast<size_t>(role)]; }

absl::string_view RpcName(Rpc rpc) {
  const absl::string_view method = RuleOf(rpc).method;
  return method.substr(method.rfind('.') + 1);
}

}  // namespace distro::server
