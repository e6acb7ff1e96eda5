#include "common/client/follow/mirrors.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"

namespace distro {
namespace {

constexpr uint64_t kMuchBytes = 16 << 20;  // of a snapshot, in one response

}  // namespace

absl::Status ValidateMirrors(const std::vector<std::string>& urls) {
  if (std::ranges::count(urls, kNoMirrors) > 0) {
    return urls.size() == 1 ? absl::OkStatus()
                            : absl::InvalidArgumentError("none: give it alone, without URLs");
  }
  for (const std::string& url : urls) DISTRO_RETURN_IF_ERROR(ParseHttpUrl(url).status());
  return absl::OkStatus();
}

std::vector<std::string> ChosenMirrors(const std::vector<std::string>& users,
                                       std::vector<std::string> aggregators) {
  if (users.empty()) return aggregators;
  return users[0] == kNoMirrors ? std::vector<std::string>() : users;
}

Mirrors::Mirrors(const Follower& follower, const MirrorList& list, std::function<bool()> cancelled)
    : follower_(follower), run_id_(list.run_id) {
  const HttpClientOptions options{
      .cancelled = [state = follower.state, cancelled = std::move(cancelled)] {
        return state->ended() || (cancelled && cancelled());
      }};
  if (!IsRunId(run_id_)) return;
  for (const std::string& text : list.urls) {
    if (mirrors_.size() == kMostMirrors) break;
    const absl::StatusOr<HttpUrl> url = ParseHttpUrl(text);
    if (url.ok()) {
      mirrors_.emplace_back(*url, options, follower);
    } else {
      follower.log->Warning("mirror left out", {{"error", url.status()}});
    }
  }
}

bool Mirrors::usable() const {
  return std::ranges::any_of(
      mirrors_, [now = now()](const Mirror& mirror) { return mirror.usable_from <= now; });
}

void Mirrors::Failed(Mirror* mirror, const absl::Status& status) {
  const absl::Duration pause = mirror->backoff.Next();
  mirror->usable_from = now() + pause;
  follower_.meter->AddMirrorFailure();
  follower_.log->Warning("mirror failed", {{"mirror", mirror->url},
                                           {"error", status},
                                           {"left_alone_seconds", absl::ToDoubleSeconds(pause)}});
}

absl::Status Mirrors::Try(absl::FunctionRef<absl::Status(HttpClient&)> fetch) {
  for (Mirror& mirror : mirrors_) {
    if (mirror.usable_from > now()) continue;
    const absl::Status status = fetch(mirror.client);
    mirror.served = status.ok();
    if (status.ok() || absl::IsCancelled(status)) return status;
    Failed(&mirror, status);
  }
  return absl::UnavailableError("no mirror has given the object");
}

void Mirrors::RoundOver() {
  for (Mirror& mirror : mirrors_) {
    if (std::exchange(mirror.served, false)) mirror.backoff.Reset();
  }
}

void Mirrors::Arrived(uint64_t bytes) {
  follower_.meter->AddMirror(bytes);
  // A transfer that moves is no silence of the subscription.
  follower_.state->Update([now = now()](ClientView& view) { view.last_frame = now; });
}

absl::StatusOr<SharedBytes> Mirrors::Fetch(RoundId round, const v1::SegmentObject& object) {
  const std::string path =
      ObjectPath({.run_id = run_id_,
                  .result = ObjectName::Result{round, SegmentId(object.segment())},
                  .sha256 = object.sha256()});
  std::string bytes;
  const absl::Status tried = Try([&](HttpClient& client) {
    bytes.clear();
    bytes.reserve(object.payload_bytes());
    absl::Duration last = now();
    DISTRO_RETURN_IF_ERROR(client.Get(path, 0, [&](uint64_t, absl::string_view piece) {
      if (piece.size() > object.payload_bytes() - bytes.size())
        return absl::UnavailableError("more bytes than the object has");
      bytes.append(piece.data(), piece.size());
      follower_.meter->AddReceived(piece.size(), last, now());
      last = now();
      Arrived(piece.size());
      return absl::OkStatus();
    }));
    if (AsBytes(Sha256(bytes)) == object.sha256()) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(path, ": ", bytes.size(), " bytes that are not it"));
  });
  if (!tried.ok()) return tried;
  return std::make_shared<const std::string>(std::move(bytes));
}

absl::Status Mirrors::Append(const v1::SnapshotInfo& snapshot, PartFile* part) {
  const std::string path = ObjectPath({.run_id = run_id_, .sha256 = snapshot.sha256()});
  absl::Status disk;  // that failed: no other mirror helps
  const auto take = [&](uint64_t offset, absl::string_view piece) {
    if (offset + piece.size() > snapshot.size_bytes())
      return absl::UnavailableError("more bytes than the object has");
    // Without ranges a server begins again at 0.
    if (offset < part->size())
      piece.remove_prefix(std::min<uint64_t>(piece.size(), part->size() - offset));
    disk = part->Append(piece);
    follower_.meter->AddSnapshot(piece.size());
    Arrived(piece.size());
    return disk.ok() ? absl::OkStatus() : absl::CancelledError("disk");
  };
  const absl::Status tried = Try([&](HttpClient& client) {
    while (part->size() < snapshot.size_bytes()) {
      const absl::Duration begin = now();
      const uint64_t had = part->size();
      const absl::Status status = client.Get(path, had, take);
      follower_.meter->AddBulk(part->size() - had, now() - begin);
      if (absl::IsCancelled(status)) return status;
      // A cache may end a long response: one that gave much is asked again.
      if (part->size() - had >= kMuchBytes) continue;
      if (!status.ok()) return status;
      if (part->size() < snapshot.size_bytes()) {
        return absl::UnavailableError(absl::StrCat(path, ": ended after ", part->size(), " of ",
                                                   snapshot.size_bytes(), " bytes"));
      }
    }
    return absl::OkStatus();
  });
  return disk.ok() ? tried : disk;
}

}  // namespace distro
