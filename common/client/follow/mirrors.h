// Fetches results and snapshots from mirrors: HTTP caches of the aggregator's objects
// (docs/protocol.md, "Objects"). Bytes count only with the announced SHA-256, so a mirror need not
// be trusted. One that fails is left alone for a while, longer each time until it has served a
// round without a failure; while all are, the follower uses the aggregator's stream.
//
// Not thread-safe. Blocking.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/part_file.h"
#include "common/client/backoff.h"
#include "common/client/follow/follower.h"
#include "common/feed/object_source.h"
#include "common/net/http/http_client.h"
#include "common/net/http/object_path.h"
#include "distro/v1/snapshot.pb.h"

namespace distro {

inline constexpr size_t kMostMirrors = 16;
// In place of URLs: no mirror is to be asked.
inline constexpr absl::string_view kNoMirrors = "none";

// Checks what a user names: URLs, or only "none". InvalidArgument: one of them is neither.
absl::Status ValidateMirrors(const std::vector<std::string>& urls);
// What to ask: the mirrors that the user names, if any, else those that the aggregator names.
std::vector<std::string> ChosenMirrors(const std::vector<std::string>& users,
                                       std::vector<std::string> aggregators);

// The mirrors of a run, as its aggregator or the user named them.
struct MirrorList {
  std::string run_id = {};
  std::vector<std::string> urls = {};  // in the order to try them
};

class Mirrors final : public ObjectSource {
 public:
  // `cancelled` is asked while a transfer waits; the end of the client cancels too. The list may
  // come from an aggregator that lies: an URL that is none is left out, with a warning, and so are
  // all behind kMostMirrors, and all of a run_id that is none.
  Mirrors(const Follower& follower, const MirrorList& list,
          std::function<bool()> cancelled = nullptr);

  // Whether one of them may be asked now.
  bool usable() const;

  absl::StatusOr<SharedBytes> Fetch(RoundId round, const v1::SegmentObject& object) override;

  // A round was committed whose results came from mirrors.
  void RoundOver();

  // Appends what `part` lacks of the snapshot or companion, whose SHA-256 is checked by the caller.
  // Unavailable: no mirror has given all of it; what arrived is kept. Other errors: of the disk.
  absl::Status Append(const v1::SnapshotInfo& snapshot, PartFile* part);

 private:
  struct Mirror {
    Mirror(const HttpUrl& server, const HttpClientOptions& options, const Follower& follower)
        : url(server.Text()), client(server, options), backoff(kPause, follower.seed + 3) {}

    const std::string url;
    HttpClient client;
    Backoff backoff;
    absl::Duration usable_from = -absl::InfiniteDuration();
    bool served = false;  // since the last RoundOver, and last without a failure
  };
  // Of a mirror that failed.
  static constexpr BackoffOptions kPause{.initial = absl::Seconds(10), .max = absl::Minutes(10)};

  // Tries the mirrors in order until `fetch` is OK, or the client ends.
  absl::Status Try(absl::FunctionRef<absl::Status(HttpClient&)> fetch);
  void Failed(Mirror* mirror, const absl::Status& status);
  absl::Duration now() const { return follower_.clock->MonotonicNow(); }
  void Arrived(uint64_t bytes);

  const Follower follower_;
  const std::string run_id_;
  std::deque<Mirror> mirrors_;
};

}  // namespace distro
