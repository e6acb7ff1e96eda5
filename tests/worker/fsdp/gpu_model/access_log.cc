#include "tests/worker/fsdp/gpu_model/access_log.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace distro::worker::testing {
namespace {

uintptr_t Begin(const Access& access) { return reinterpret_cast<uintptr_t>(access.begin); }
uintptr_t End(const Access& access) { return Begin(access) + access.bytes; }

bool Conflict(const Access& a, const Access& b) {
  return (a.writes || b.writes) && Begin(a) < End(b) && Begin(b) < End(a);
}

bool Covers(const Access& outer, const Access& inner) {
  return Begin(outer) <= Begin(inner) && End(inner) <= End(outer);
}

std::string Verb(const Access& access) { return access.writes ? " writes" : " reads"; }

}  // namespace

void VectorClock::Join(const VectorClock& other) {
  counts_.resize(std::max(counts_.size(), other.counts_.size()));
  for (size_t stream = 0; stream < other.counts_.size(); ++stream)
    counts_[stream] = std::max(counts_[stream], other.counts_[stream]);
}

uint64_t VectorClock::Tick(size_t stream) {
  counts_.resize(std::max(counts_.size(), stream + 1));
  return ++counts_[stream];
}

bool VectorClock::Has(size_t stream, uint64_t number) const {
  return stream < counts_.size() && counts_[stream] >= number;
}

std::vector<std::string> AccessLog::Add(const std::string& operation, size_t stream,
                                        uint64_t number, const VectorClock& clock,
                                        const std::vector<Access>& accesses) {
  std::vector<std::string> conflicts;
  for (const Access& access : accesses) {
    if (access.bytes == 0) continue;
    for (const Entry& entry : entries_) {
      if (clock.Has(entry.stream, entry.number) || !Conflict(entry.access, access)) continue;
      conflicts.push_back(absl::StrCat(operation, Verb(access), " memory that ", entry.operation,
                                       Verb(entry.access), ", and nothing orders them"));
    }
  }
  for (const Access& access : accesses) {
    if (access.bytes == 0) continue;
    // Who has no order with an entry that is forgotten has none with this one either.
    const auto forgotten = [&](const Entry& entry) {
      return (access.writes || (entry.stream == stream && !entry.access.writes)) &&
             Covers(access, entry.access) && clock.Has(entry.stream, entry.number);
    };
    entries_.erase(std::remove_if(entries_.begin(), entries_.end(), forgotten), entries_.end());
    entries_.push_back({operation, stream, number, access});
  }
  return conflicts;
}

}  // namespace distro::worker::testing
