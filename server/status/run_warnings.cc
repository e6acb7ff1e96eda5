#include "server/status/run_warnings.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace distro::server {
namespace {

constexpr absl::Duration kStalledAtLeast = absl::Minutes(1);
constexpr double kStalledRounds = 5;
constexpr absl::Duration kMismatchShown = absl::Minutes(10);
constexpr double kExcludedRatio = 0.1;
constexpr uint64_t kEmptyRoundsCritical = 3;
constexpr double kFreeRatio = 0.1;
constexpr absl::Duration kCertificateLeft = absl::Hours(24 * 7);
constexpr double kRoundsWithoutSnapshot = 1000;
constexpr char kPrefix[] = "distro_aggregator_";

class Collector {
 public:
  explicit Collector(const WarningFacts& facts) : facts_(facts) {}

  void Rounds();
  void Members();
  void Machine();
  std::vector<Warning> Take();

 private:
  double Metric(absl::string_view name) const {
    return facts_.metrics->Get(absl::StrCat(kPrefix, name));
  }
  void Add(std::string name, bool critical, std::string what) {
    warnings_.push_back({std::move(name), critical, std::move(what)});
  }

  const WarningFacts& facts_;
  std::vector<Warning> warnings_;
};

void Collector::Rounds() {
  const RunStatus& status = *facts_.status;
  const HistoryView& history = *facts_.history;
  const bool began = status.round > RoundId(0);
  if (status.state == v1::RUN_STATE_WAITING && began)
    Add("DistroTrainingStalled", true, absl::StrCat("No round can close: ", status.reason));
  const absl::Duration limit =
      std::max(kStalledAtLeast, absl::Seconds(kStalledRounds * history.round_seconds.value_or(0)));
  if (status.state == v1::RUN_STATE_TRAINING && history.open_for.value_or(limit) > limit) {
    Add("DistroTrainingStalled", true,
        absl::StrFormat("The round is open for %.0f s; rounds take %.1f s. %s",
                        absl::ToDoubleSeconds(*history.open_for), history.round_seconds.value_or(0),
                        status.reason));
  }
  if (history.last_loss_missing)
    Add("DistroLossNotFinite", false, "No update of the last round came with a finite loss");
  if (history.empty_rounds > 0) {
    Add("DistroLossNotFinite", history.empty_rounds >= kEmptyRoundsCritical,
        absl::StrCat("All workers abstained in the last ", history.empty_rounds,
                     " rounds, which changed nothing: no step was finite"));
  }
  if (history.excluded_ratio.value_or(0) > kExcludedRatio) {
    Add("DistroUpdatesExcluded", false,
        absl::StrFormat("%.0f %% of the updates of the last %d rounds were not fully included",
                        100 * *history.excluded_ratio,
                        std::min<uint64_t>(history.rounds, kRecentRounds)));
  }
}

void Collector::Members() {
  const RunStatus& status = *facts_.status;
  const HistoryView& history = *facts_.history;
  const auto active = std::ranges::count(status.workers, v1::MEMBER_STATE_ACTIVE, &Worker::state);
  const auto needed = static_cast<int64_t>(facts_.min_workers);
  if (status.state == v1::RUN_STATE_TRAINING && active <= needed &&
      history.most_expected > active) {
    Add("DistroQuorumAtRisk", false,
        absl::StrCat(active, " workers are active, rounds need ", needed, ", and there were ",
                     history.most_expected));
  }
  if (history.since_mismatch.value_or(kMismatchShown) < kMismatchShown) {
    Add("DistroReplicasDiverged", true,
        absl::StrFormat("A state hash differed %.0f s ago (%s); %.0f did since the start",
                        absl::ToDoubleSeconds(*history.since_mismatch), status.mismatch,
                        Metric("state_hash_mismatches_total")));
  }
}

void Collector::Machine() {
  const std::string& disk_error = facts_.status->disk_error;
  if (!disk_error.empty())
    Add("DistroDiskFilling", true, absl::StrCat("The commit waits for the disk: ", disk_error));
  const double size = Metric("data_dir_size_bytes");
  const double free = Metric("data_dir_free_bytes");
  if (disk_error.empty() && size > 0 && free < kFreeRatio * size) {
    Add("DistroDiskFilling", false,
        absl::StrFormat("%.1f GB are free for the data folder, %.0f %% of its disk", free / 1e9,
                        100 * free / size));
  }
  const double files = Metric("data_dir_size_files");  // 0: no limit
  const double free_files = Metric("data_dir_free_files");
  if (disk_error.empty() && files > 0 && free_files < kFreeRatio * files) {
    Add("DistroDiskFilling", false,
        absl::StrFormat("There is room for %.0f more files, %.0f %% of the inodes of the data "
                        "folder's disk; the log has %.0f files",
                        free_files, 100 * free_files / files, Metric("log_files")));
  }
  if (Metric("log_damaged_records") > 0) {
    Add("DistroLogDamaged", true,
        absl::StrFormat("%.0f records of the log are damaged: who needs one cannot go on",
                        Metric("log_damaged_records")));
  }
  if (Metric("snapshot_round") == 0 && Metric("round") >= kRoundsWithoutSnapshot) {
    Add("DistroSnapshotStale", false,
        absl::StrFormat("No snapshot but the initial one: without an archiver the log grows for "
                        "ever, %.2f GB so far",
                        Metric("log_bytes") / 1e9));
  }
  const double expiry = Metric("tls_certificate_expiry_timestamp_seconds");
  const absl::Duration left = absl::UnixEpoch() + absl::Seconds(expiry) - facts_.now;
  if (expiry > 0 && left < kCertificateLeft) {
    Add("DistroCertificateExpiry", left < absl::ZeroDuration(),
        absl::StrFormat("The certificate ends in %.1f days", absl::ToDoubleHours(left) / 24));
  }
}

std::vector<Warning> Collector::Take() {
  std::ranges::stable_sort(warnings_, std::greater<>(), &Warning::critical);
  return std::move(warnings_);
}

}  // namespace

std::vector<Warning> RunWarnings(const WarningFacts& facts) {
  Collector collector(facts);
  collector.Rounds();
  collector.Members();
  collector.Machine();
  return collector.Take();
}

}  // namespace distro::server
