// The calls that each role may make, in one table (a test compares docs/security.md with it). Plain
// data; no gRPC here.
#pragma once

#include <array>
#include <optional>

#include "absl/strings/string_view.h"

namespace distro::server {

enum class Role { kWorker, kArchiver, kViewer, kAdmin };

inline constexpr std::array<Role, 4> kRoles = {Role::kWorker, Role::kArchiver, Role::kViewer,
                                               Role::kAdmin};

// "worker", "archiver", "viewer", "admin".
absl::string_view RoleName(Role role);
// nullopt: there is no such role.
std::optional<Role> ParseRole(absl::string_view name);

enum class Rpc {
  kJoin,
  kHeartbeat,
  kUploadUpdate,
  kSubscribeRounds,
  kDownloadSnapshot,
  kUploadSnapshot,
  kReportState,
  kLeave,
  kCreateRun,
  kGetRun,
  kListWorkers,
  kPause,
  kResume,
  kExtend,
  kEvict,
  kAdmit,
  kMeasureLink,
};

// A row: who may call an rpc.
struct RpcRule {
  Rpc rpc;
  absl::string_view method;  // full name, "distro.v1.AggregatorService.Join"
  // In the order of kRoles.
  std::array<bool, 4> allowed;
};

// A row for each method of all services, in the order of Rpc.
inline constexpr std::array<RpcRule, 17> kRpcRules = {{
    //                                                            worker archiver viewer admin
    {Rpc::kJoin, "distro.v1.AggregatorService.Join", {true, false, false, false}},
    {Rpc::kHeartbeat, "distro.v1.AggregatorService.Heartbeat", {true, false, false, false}},
    {Rpc::kUploadUpdate, "distro.v1.AggregatorService.UploadUpdate", {true, false, false, false}},
    {Rpc::kSubscribeRounds,
     "distro.v1.AggregatorService.SubscribeRounds",
     {true, true, false, false}},
    {Rpc::kDownloadSnapshot,
     "distro.v1.AggregatorService.DownloadSnapshot",
     {true, true, false, false}},
    {Rpc::kUploadSnapshot,
     "distro.v1.AggregatorService.UploadSnapshot",
     {false, true, false, false}},
    {Rpc::kReportState, "distro.v1.AggregatorService.ReportState", {false, true, false, false}},
    {Rpc::kLeave, "distro.v1.AggregatorService.Leave", {true, false, false, false}},
    {Rpc::kCreateRun, "distro.v1.AdminService.CreateRun", {false, false, false, true}},
    {Rpc::kGetRun, "distro.v1.AdminService.GetRun", {false, true, true, true}},
    {Rpc::kListWorkers, "distro.v1.AdminService.ListWorkers", {false, false, true, true}},
    {Rpc::kPause, "distro.v1.AdminService.Pause", {false, false, false, true}},
    {Rpc::kResume, "distro.v1.AdminService.Resume", {false, false, false, true}},
    {Rpc::kExtend, "distro.v1.AdminService.Extend", {false, false, false, true}},
    {Rpc::kEvict, "distro.v1.AdminService.Evict", {false, false, false, true}},
    {Rpc::kAdmit, "distro.v1.AdminService.Admit", {false, false, false, true}},
    {Rpc::kMeasureLink, "distro.v1.LinkService.MeasureLink", {true, true, false, true}},
}};

bool MayCall(Role role, Rpc rpc);
// The method's own name, "Join".
absl::string_view RpcName(Rpc rpc);

}  // namespace distro::server
