#include "common/simulation/local_exchange.h"

#include <cstdint>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/base/mapped_file.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"

namespace distro {
namespace {

std::shared_ptr<EventQueue> MakeQueue() {
  return std::make_shared<EventQueue>(SIZE_MAX, UINT64_MAX);
}

}  // namespace

LocalExchange::LocalExchange(LocalAggregator* aggregator)
    : aggregator_(aggregator), queue_(MakeQueue()) {}

LocalExchange::~LocalExchange() { Leave("gone"); }

std::shared_ptr<EventQueue> LocalExchange::queue() const {
  absl::MutexLock lock(&mu_);
  return queue_;
}

absl::StatusOr<v1::JoinResponse> LocalExchange::Join(const v1::JoinRequest& request) {
  {
    absl::MutexLock lock(&mu_);
    if (stopped_) return absl::CancelledError("stopped");
    if (!worker_.name().empty()) queue_ = MakeQueue();
  }
  DISTRO_ASSIGN_OR_RETURN(v1::JoinResponse response, aggregator_->Join(request, queue()));
  worker_ = request.worker();
  return response;
}

absl::Status LocalExchange::DownloadSnapshot(const v1::SnapshotInfo& snapshot,
                                             const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(const MappedFile file,
                          MappedFile::Open(aggregator_->run().snapshot_path));
  const Sha256Digest digest = Sha256(file.bytes());
  if (absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()) !=
      snapshot.sha256()) {
    return absl::InvalidArgumentError(
        absl::StrCat(aggregator_->run().snapshot_path, ": the SHA-256 is ", ToHex(digest)));
  }
  return WriteFileAtomically(path, file.bytes());
}

absl::Status LocalExchange::DownloadCompanion(const v1::CompanionFile& file,
                                              const std::string& /*path*/) {
  return absl::NotFoundError(file.name());
}

absl::Status LocalExchange::Follow(const Layout* layout, RoundId next_round, uint64_t log_hash) {
  if (worker_.name().empty()) return absl::FailedPreconditionError("Follow: Join comes first");
  if (next_round == RoundId(0)) return absl::OkStatus();
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "diverged",
                         absl::StrCat("a local run begins at round 0, not ", next_round.value()));
}

absl::StatusOr<RoundEvent> LocalExchange::Next() {
  absl::StatusOr<RoundEvent> event = queue()->Pop();
  if (event.ok())
    meter_.AddReceived(EventBytes(*event), absl::ZeroDuration(), absl::ZeroDuration());
  return event;
}

void LocalExchange::Upload(RoundUpdate update) {
  uint64_t bytes = 0;
  for (const SharedBytes& payload : update.payloads) bytes += payload->size();
  if (absl::Status status = aggregator_->Upload(worker_.name(), std::move(update)); !status.ok()) {
    queue()->Close(std::move(status), /*drop=*/true);
    return;
  }
  meter_.AddSent(bytes);
}

void LocalExchange::Leave(const std::string& reason) {
  if (worker_.name().empty()) return;
  aggregator_->Leave(worker_);
  worker_.Clear();
}

void LocalExchange::Stop() {
  absl::MutexLock lock(&mu_);
  stopped_ = true;
  queue_->Close(absl::CancelledError("stopped"), /*drop=*/true);
}

bool LocalExchange::stopped() const {
  absl::MutexLock lock(&mu_);
  return stopped_;
}

}  // namespace distro
