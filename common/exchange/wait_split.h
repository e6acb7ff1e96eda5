// What the training thread's waiting is spent on: its own upload, a result that arrives, or other workers
// (docs/decisions/0004-time-of-the-training-thread.md). When a frame began to travel is known only once it is there, so the
// newest part of a wait, up to twice what frames took lately, stays undecided until then; nothing that was decided changes.
//
// Times are monotonic. Not thread-safe.
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace distro {

class WaitSplit {
 public:
  void BeginWait(absl::Duration now) {
    waiting_ = true;
    decided_ = now;
  }
  void EndWait(absl::Duration now) {
    if (uploading_) Decide(now, &upload_);
    waiting_ = false;
  }
  void BeginUpload(absl::Duration now) {
    Advance(now);
    uploading_ = true;
    decided_ = std::max(decided_, now);
  }
  void EndUpload(absl::Duration now) {
    if (uploading_) Decide(now, &upload_);
    uploading_ = false;
  }
  // Result bytes were in flight from `since` to `now`.
  void Downloaded(absl::Duration since, absl::Duration now) {
    const absl::Duration took = std::max(now - since, absl::ZeroDuration());
    longest_ = std::max(took, longest_ * 0.95);
    if (uploading_) return Decide(now, &upload_);
    Advance(now);
    decided_ = std::max(decided_, since);
    Decide(now, &download_);
  }

  // Moves the border of what is decided; then the three below are those of `now`.
  void Advance(absl::Duration now) {
    if (uploading_) return Decide(now, &upload_);
    decided_ = std::max(decided_, now - std::min(2 * longest_, kMostUndecided));
  }
  absl::Duration upload() const { return upload_; }
  absl::Duration download() const { return download_; }
  absl::Duration Undecided(absl::Duration now) const {
    return waiting_ ? std::max(now - decided_, absl::ZeroDuration()) : absl::ZeroDuration();
  }

 private:
  static constexpr absl::Duration kMostUndecided = absl::Seconds(10);

  // Everything up to `now` is `part`, if anybody waits.
  void Decide(absl::Duration now, absl::Duration* part) {
    if (waiting_) *part += std::max(now - decided_, absl::ZeroDuration());
    decided_ = std::max(decided_, now);
  }

  bool waiting_ = false;
  bool uploading_ = false;
  absl::Duration decided_;  // up to where a wait that goes on is decided
  absl::Duration upload_;
  absl::Duration download_;
  absl::Duration longest_;  // frame, lately
};

}  // namespace distro
