#include "server/auth/tokens/roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "distro/v1/admin.pb.h"
#include "distro/v1/aggregator.pb.h"
#include "distro/v1/link.pb.h"

namespace distro::server {
namespace {

std::set<std::string> MethodsOfAllServices() {
  // aggregator.proto has no message whose descriptor would link it.
  EXPECT_NE(descriptor_table_distro_2fv1_2faggregator_2eproto.filename, nullptr);
  std::set<std::string> methods;
  const google::protobuf::FileDescriptor* const admin = v1::GetRunRequest::descriptor()->file();
  for (const auto* file : {admin, admin->pool()->FindFileByName("distro/v1/aggregator.proto"),
                           v1::LinkNeeds::descriptor()->file()}) {
    if (file == nullptr) return {};
    for (int s = 0; s < file->service_count(); ++s)
      for (int m = 0; m < file->service(s)->method_count(); ++m)
        methods.insert(file->service(s)->method(m)->full_name());
  }
  return methods;
}

TEST(RpcRulesTest, HaveARowForEachMethodOfAllServices) {
  std::set<std::string> rows;
  for (const RpcRule& rule : kRpcRules) rows.emplace(rule.method);
  EXPECT_EQ(rows, MethodsOfAllServices());
  EXPECT_EQ(rows.size(), kRpcRules.size());
}

TEST(RpcRulesTest, LetSomebodyCallEachMethod) {
  for (const RpcRule& rule : kRpcRules)
    EXPECT_THAT(rule.allowed, ::testing::Contains(true)) << rule.method;
}

TEST(RpcRulesTest, LeaveWhatChangesTheRunToAdmins) {
  for (const Rpc rpc :
       {Rpc::kCreateRun, Rpc::kPause, Rpc::kResume, Rpc::kExtend, Rpc::kEvict, Rpc::kAdmit})
    for (const Role role : kRoles) EXPECT_EQ(MayCall(role, rpc), role == Role::kAdmin);
}

TEST(RpcRulesTest, AreTheTableOfThePage) {
  const absl::StatusOr<std::string> page =
      ReadFile(std::string(DISTRO_SOURCE_DIR) + "/docs/security.md");
  ASSERT_TRUE(page.ok()) << page.status();
  for (const RpcRule& rule : kRpcRules) {
    std::string row = absl::StrCat("| `", RpcName(rule.rpc), "` |");
    for (const bool allowed : rule.allowed) absl::StrAppend(&row, allowed ? " yes |" : " |");
    EXPECT_THAT(*page, ::testing::HasSubstr(row + "\n"));
  }
}

TEST(RoleTest, HasANameThatIsReadBack) {
  for (const Role role : kRoles) EXPECT_EQ(ParseRole(RoleName(role)), role);
  for (const char* none : {"", "Admin", "root", "admin "})
    EXPECT_EQ(ParseRole(none), std::nullopt) << none;
}

}  // namespace
}  // namespace distro::server
