#include "server/log/bucket/leader.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "server/log/bucket/bucket_keys.h"
#include "server/log/bucket/folder_copy.h"

namespace distro::server {
namespace {

constexpr char kLeaderKey[] = "leader";
constexpr size_t kMaxLeaderBytes = 4096;
constexpr absl::Duration kFetchInterval = absl::Seconds(30);

// Shorter than an interval of heartbeats by default, and all that a stop may take.
constexpr absl::Duration kPatience = absl::Seconds(3);
constexpr absl::Duration kLongestPause = absl::Seconds(1);

// Different at each call, also in other processes.
std::string NewName() { return absl::StrFormat("%08x", std::random_device()()); }

struct Leader {
  std::string text;
  std::string etag;
};

absl::StatusOr<Leader> ReadLeader(S3Client* bucket) {
  S3Object object;
  DISTRO_ASSIGN_OR_RETURN(std::string text, bucket->Read(kLeaderKey, kMaxLeaderBytes, &object));
  return Leader{std::move(text), std::move(object.etag)};
}

// Logs a failure once, until another one or none comes.
class Trouble {
 public:
  Trouble(absl::string_view what, Log* log) : what_(what), log_(log) {}
  void Is(const absl::Status& status) {
    if (!status.ok() && status != last_) log_->Warning(what_, {{"error", status}});
    last_ = status;
  }

 private:
  const absl::string_view what_;
  Log* const log_;
  absl::Status last_;
};

}  // namespace

absl::Status FencedError(absl::string_view url) {
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, "fenced",
      absl::StrCat(url, ": fenced: another aggregator has started with the same --log since"));
}

absl::Status CheckEpoch(S3Client* bucket, const std::string& sha256) {
  if (sha256.empty()) return absl::OkStatus();
  DISTRO_ASSIGN_OR_RETURN(const S3Object epoch, bucket->Head(kEpochKey));
  if (epoch.sha256 == sha256) return absl::OkStatus();
  return FencedError(absl::StrCat(bucket->place().url, "/", kEpochKey));
}

LeaderHeartbeat::LeaderHeartbeat(const S3Client& bucket, std::function<std::string()> epoch_sha256,
                                 LeaderOptions options, Log* log)
    : bucket_(bucket.With({.patience = kPatience, .answer_patience = kPatience, .tries = 1})),
      epoch_sha256_(std::move(epoch_sha256)),
      options_(std::move(options)),
      log_(log),
      thread_([this] { Run(); }) {}

LeaderHeartbeat::~LeaderHeartbeat() {
  stopping_.Notify();
  thread_.join();
  // Not if another one leads: it would have to claim the object again, and might be overtaken.
  if (epoch_sha256_().empty() || !CheckEpoch(bucket_.get(), epoch_sha256_()).ok()) return;
  const absl::StatusOr<Leader> leader = ReadLeader(bucket_.get());
  if (leader.ok() && leader->text == written_) bucket_->Delete(kLeaderKey).IgnoreError();
}

void LeaderHeartbeat::Run() {
  Trouble trouble("not written that this aggregator leads: one that waits may take over", log_);
  const std::string name = NewName();
  absl::Duration answered = Clock::Real()->MonotonicNow();
  for (uint64_t beat = 0;; ++beat) {
    absl::Status status = CheckEpoch(bucket_.get(), epoch_sha256_());
    if (absl::IsFailedPrecondition(status)) return options_.on_fenced(status);
    const std::string text = absl::StrCat(name, " ", beat, "\n");
    if (status.ok()) status = bucket_->Put(kLeaderKey, ContentOf(text)).status();
    trouble.Is(status);
    const absl::Duration now = Clock::Real()->MonotonicNow();
    if (status.ok()) {
      written_ = text;
      answered = now;
    } else if (options_.patience > absl::ZeroDuration() && now - answered > options_.patience) {
      return options_.on_fenced(ErrorWithReason(
          absl::StatusCode::kUnavailable, "disk",
          absl::StrCat("no answer of the bucket for ", absl::FormatDuration(options_.patience),
                       ", another aggregator may serve the run: ", status.message())));
    }
    if (stopping_.WaitFor(options_.interval)) return;
  }
}

namespace {

// Waits for the leader's silence, and keeps a copy of the run.
class Standby {
 public:
  Standby(S3Client* bucket, const std::string& data_dir, absl::Duration silence, const Clock* clock,
          Log* log)
      : bucket_(bucket),
        silence_(silence),
        clock_(clock),
        log_(log),
        copy_(bucket, data_dir, Disk::Real(), log) {}

  // Whether this process has written the object `leader`.
  bool TakesOver() {
    const absl::StatusOr<Leader> leader = ReadLeader(bucket_);
    if (absl::IsNotFound(leader.status())) return Claims(S3Condition::Absent());
    reading_.Is(leader.status());
    if (!leader.ok()) return false;
    const absl::Duration now = clock_->MonotonicNow();
    if (leader->text != seen_) {
      if (seen_.empty())
        log_->Info("standby: another aggregator leads", {{"leader", leader->text}});
      seen_ = leader->text;
      changed_ = now;
    }
    if (now - changed_ < silence_) return false;
    log_->Warning("standby: the leader is silent: taking over",
                  {{"leader", seen_}, {"silence", absl::FormatDuration(now - changed_)}});
    return Claims(S3Condition::Matches(leader->etag));
  }

  void Fetch() {
    if (clock_->MonotonicNow() < next_fetch_) return;
    fetching_.Is(copy_.Fetch().status());
    next_fetch_ = clock_->MonotonicNow() + kFetchInterval;
  }

 private:
  bool Claims(const S3Condition& condition) {
    const std::string text = NewName() + "\n";
    const absl::Status put = bucket_->Put(kLeaderKey, ContentOf(text), condition).status();
    if (!absl::IsAlreadyExists(put)) reading_.Is(put);  // else another one was faster
    return put.ok();
  }

  S3Client* const bucket_;
  const absl::Duration silence_;
  const Clock* const clock_;
  Log* const log_;
  FolderCopy copy_;
  Trouble reading_{"standby: the bucket cannot be used: will try again", log_};
  Trouble fetching_{"standby: the run cannot be fetched: will try again", log_};
  std::string seen_;
  absl::Duration changed_;
  absl::Duration next_fetch_ = -absl::InfiniteDuration();
};

}  // namespace

absl::Status AwaitLeadership(S3Client* bucket, const std::string& data_dir, absl::Duration silence,
                             const std::function<bool()>& cancelled, const Clock* clock, Log* log) {
  DISTRO_RETURN_IF_ERROR(CreateFolders(data_dir));
  DISTRO_ASSIGN_OR_RETURN(const FolderLock lock, FolderLock::Take(data_dir));
  Standby standby(bucket, data_dir, silence, clock, log);
  while (!cancelled()) {
    standby.Fetch();  // first, so that the start is quick
    if (standby.TakesOver()) return absl::OkStatus();
    absl::SleepFor(std::min(silence / 8, kLongestPause));
  }
  return absl::CancelledError("stopped while another aggregator leads");
}

}  // namespace distro::server
