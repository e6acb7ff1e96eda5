// The workers of a local run: who has joined, with which queue of events, and who has left. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/feed/event_queue.h"

namespace distro {

struct LocalMember {
  uint64_t incarnation = 0;
  uint64_t own_tokens = 0;  // with local data
  std::shared_ptr<EventQueue> queue;
  bool left = false;  // receives nothing more
};

class LocalMembers {
 public:
  // False: the name is taken.
  bool Add(const std::string& name, LocalMember member);
  void Remove(const std::string& name) { members_.erase(name); }

  // nullptr: nobody of this name has joined. Valid until Remove.
  LocalMember* Find(const std::string& name);
  // Requires that the name has joined.
  const LocalMember& Get(const std::string& name) const { return members_.at(name); }
  // All that have joined, those that left included.
  size_t size() const { return members_.size(); }
  // The names of those that have not left, ascending.
  std::vector<std::string> Present() const;

  // Queues the event for all that have not left.
  void Broadcast(const RoundEvent& event) const;
  // Every queue ends with `status`, after the events that it holds.
  void CloseQueues(const absl::Status& status) const;

 private:
  std::map<std::string, LocalMember> members_;
};

}  // namespace distro
