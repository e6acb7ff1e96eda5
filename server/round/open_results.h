// The results of the open round, for those who fetch them by HTTP before they are in the log.
//
// Thread-safe.
#pragma once

#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/checksum.h"
#include "common/base/ids.h"
#include "common/base/shared_bytes.h"
#include "common/method/base/round_method.h"

namespace distro::server {

class OpenResults {
 public:
  // Drops those of an earlier round.
  void Add(const RoundPlace& place, const SegmentResult& result) {
    absl::MutexLock lock(&mu_);
    if (round_ != place.round) results_.clear();
    round_ = place.round;
    results_[place.segment] = {result.sha256, result.payload};
  }
  // The round is in the log, or never will be.
  void Clear() {
    absl::MutexLock lock(&mu_);
    results_.clear();
  }
  // nullptr: there is none with this SHA-256.
  SharedBytes Find(const RoundPlace& place, absl::string_view sha256) const {
    absl::MutexLock lock(&mu_);
    const auto found = results_.find(place.segment);
    if (round_ != place.round || found == results_.end()) return nullptr;
    return AsBytes(found->second.first) == sha256 ? found->second.second : nullptr;
  }

 private:
  mutable absl::Mutex mu_;
  RoundId round_ ABSL_GUARDED_BY(mu_);
  std::map<SegmentId, std::pair<Sha256Digest, SharedBytes>> results_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::server
