#include "common/simulation/local_members.h"

#include <utility>

namespace distro {

bool LocalMembers::Add(const std::string& name, LocalMember member) {
  return members_.emplace(name, std::move(member)).second;
}

LocalMember* LocalMembers::Find(const std::string& name) {
  const auto found = members_.find(name);
  return found == members_.end() ? nullptr : &found->second;
}

std::vector<std::string> LocalMembers::Present() const {
  std::vector<std::string> names;
  for (const auto& [name, member] : members_) {
    if (!member.left) names.push_back(name);
  }
  return names;
}

void LocalMembers::Broadcast(const RoundEvent& event) const {
  for (const auto& [name, member] : members_) {
    if (!member.left) member.queue->Push(event);
  }
}

void LocalMembers::CloseQueues(const absl::Status& status) const {
  for (const auto& [name, member] : members_) member.queue->Close(status, /*drop=*/false);
}

}  // namespace distro
