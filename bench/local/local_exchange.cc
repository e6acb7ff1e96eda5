#include "bench/local/local_exchange.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/feed/event_queue.h"

namespace distro::server {

// Wakes the calling thread when there may be an event, or when it was stopped.
class LocalExchange::Bell final : public Listener {
 public:
  void Wake() override {
    absl::MutexLock lock(&mu_);
    rung_ = true;
  }
  void Await() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&rung_));
    rung_ = false;
  }

 private:
  absl::Mutex mu_;
  bool rung_ ABSL_GUARDED_BY(mu_) = false;
};

LocalExchange::LocalExchange(LocalAggregator* aggregator)
    : aggregator_(aggregator), rounds_(aggregator->rounds()), bell_(std::make_shared<Bell>()) {}

LocalExchange::~LocalExchange() { Leave("gone"); }

absl::StatusOr<v1::JoinResponse> LocalExchange::Join(const v1::JoinRequest& request) {
  if (stopped_) return absl::CancelledError("stopped");
  DISTRO_ASSIGN_OR_RETURN(v1::JoinResponse response, rounds_.Join(request));
  aggregator_->Step();
  worker_ = request.worker();
  epoch_ = response.epoch();
  end_ = absl::OkStatus();
  return response;
}

absl::Status LocalExchange::DownloadSnapshot(const v1::SnapshotInfo& /*snapshot*/,
                                             const std::string& path) {
  const std::string& from = aggregator_->run().initial_snapshot_path;
  std::error_code error;
  std::filesystem::copy_file(from, path, std::filesystem::copy_options::overwrite_existing, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("copy ", from, " to ", path, ": ", error.message()));
}

absl::Status LocalExchange::DownloadCompanion(const v1::CompanionFile& file,
                                              const std::string& /*path*/) {
  return absl::NotFoundError(file.name());
}

absl::Status LocalExchange::Follow(const Layout* layout, RoundId next_round, uint64_t log_hash) {
  assembler_.emplace(layout, next_round);
  log_hash_ = log_hash;
  return Subscribe();
}

absl::Status LocalExchange::Subscribe() {
  waiting_.reset();
  subscription_ = nullptr;
  v1::SubscribeRoundsRequest request;
  request.set_run_id(aggregator_->run().run_id);
  *request.mutable_worker() = worker_;
  request.set_epoch(epoch_);
  request.set_from_round(assembler_->next_round().value());
  request.set_last_hash(log_hash_);
  DISTRO_ASSIGN_OR_RETURN(subscription_, rounds_.Subscribe(request));
  subscription_->Listen(bell_);
  return absl::OkStatus();
}

absl::StatusOr<RoundEvent> LocalExchange::Next() {
  while (true) {
    std::optional<absl::StatusOr<RoundEvent>> event = std::exchange(waiting_, std::nullopt);
    if (stopped_ || !event.has_value()) event = Poll();
    if (!event.has_value()) {
      bell_->Await();
      continue;
    }
    if (event->ok()) meter_.AddReceived(EventBytes(**event), {}, {});
    return *std::move(event);
  }
}

bool LocalExchange::Ready() {
  if (!waiting_.has_value()) waiting_ = Poll();
  return waiting_.has_value();
}

std::optional<absl::StatusOr<RoundEvent>> LocalExchange::Poll() {
  if (stopped_) return absl::CancelledError("stopped");
  if (!end_.ok()) return end_;
  absl::StatusOr<RoundEvent> event = TakeFrames();
  if (absl::IsUnavailable(event.status())) {  // the round was opened again, or the rounds ended
    if (absl::Status status = aggregator_->failure(); !status.ok()) return status;
    if (absl::Status status = Subscribe(); !status.ok()) return status;
    event = TakeFrames();
  }
  if (event.ok() && std::holds_alternative<std::monostate>(*event)) return std::nullopt;
  return event;
}

absl::StatusOr<RoundEvent> LocalExchange::TakeFrames() {
  while (true) {
    DISTRO_ASSIGN_OR_RETURN(const SharedBytes frame, subscription_->Next());
    if (frame == nullptr) return RoundEvent();
    v1::SubscribeRoundsResponse response;
    if (!response.ParseFromString(*frame)) return absl::InternalError("a frame does not parse");
    DISTRO_ASSIGN_OR_RETURN(RoundEvent event, assembler_->Add(std::move(response)));
    if (const auto* round = std::get_if<CommittedRound>(&event)) log_hash_ = round->hash;
    if (!std::holds_alternative<std::monostate>(event)) return event;
  }
}

void LocalExchange::Upload(RoundUpdate update) {
  if (absl::Status status = Send(update); !status.ok()) End(std::move(status));
  aggregator_->Step();
}

absl::Status LocalExchange::Send(const RoundUpdate& update) {
  v1::UploadHeader header;
  *header.mutable_worker() = worker_;
  header.set_epoch(epoch_);
  header.set_round(update.round.value());
  header.set_state_hash(update.state_hash);
  header.set_abstain(update.abstain);
  header.set_loss(update.loss);
  header.set_local_steps(update.local_steps);
  header.set_first_sample(update.first_sample);
  header.mutable_tensor_hashes()->Add(update.tensor_hashes.begin(), update.tensor_hashes.end());
  DISTRO_ASSIGN_OR_RETURN(const UploadTicket ticket, rounds_.BeginUpload(header));
  uint64_t bytes = 0;
  for (uint32_t s = 0; s < update.payloads.size(); ++s) {
    const RoundPlace place = {.round = update.round, .segment = SegmentId(s)};
    ReceivedPayload payload(update.payloads[s]);
    bytes += payload.bytes->size();
    DISTRO_RETURN_IF_ERROR(
        aggregator_->run().method->CheckUpdate(*payload.bytes, place, ticket.step));
    DISTRO_RETURN_IF_ERROR(rounds_.AddPayload(ticket, place.segment, std::move(payload)).status());
  }
  meter_.AddSent(bytes);
  return absl::OkStatus();
}

void LocalExchange::Report(RoundId next_round, uint64_t log_hash) {
  v1::HeartbeatRequest request;
  *request.mutable_worker() = worker_;
  request.set_epoch(epoch_);
  request.set_sequence(++heartbeats_);
  request.set_next_round(next_round.value());
  request.set_log_hash(log_hash);
  const absl::StatusOr<v1::HeartbeatResponse> response = rounds_.Heartbeat(request);
  if (!response.ok()) {
    End(response.status());
  } else if (response->directive() == v1::DIRECTIVE_RESYNC) {
    End(ErrorWithReason(absl::StatusCode::kFailedPrecondition, "diverged", response->reason()));
  }
  aggregator_->Step();
}

void LocalExchange::End(absl::Status status) {
  if (end_.ok()) end_ = std::move(status);
}

void LocalExchange::Leave(const std::string& reason) {
  if (worker_.name().empty()) return;
  subscription_ = nullptr;
  v1::LeaveRequest request;
  *request.mutable_worker() = worker_;
  request.set_reason(reason);
  rounds_.Leave(request);
  aggregator_->Step();
  worker_.Clear();
}

void LocalExchange::Stop() {
  stopped_ = true;
  bell_->Wake();
}

}  // namespace distro::server
