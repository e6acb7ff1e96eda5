#include "bench/aggregator_load/load_worker.h"

#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/aggregator_load/load_calls.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/client/channel.h"
#include "common/net/http/object_path.h"
#include "common/net/rpc/status.h"

namespace distro::bench {
namespace {

v1::WorkerIdentity Identity(int number) {
  v1::WorkerIdentity identity;
  identity.set_name(absl::StrFormat("load-%04d", number));
  identity.set_incarnation(1);
  return identity;
}

std::unique_ptr<Stub> Connect(const std::string& aggregator) {
  return v1::AggregatorService::NewStub(
      OpenChannel({.aggregator = aggregator, .insecure = true}).value());
}

}  // namespace

absl::StatusOr<v1::JoinResponse> JoinRun(Stub* control, int number) {
  v1::JoinRequest request;
  *request.mutable_worker() = Identity(number);
  request.set_data_fingerprint("synthetic");
  request.set_version(std::string(Version()));
  v1::JoinResponse response;
  grpc::ClientContext context;
  DISTRO_RETURN_IF_ERROR(FromGrpcStatus(control->Join(&context, request, &response)));
  return response;
}

LoadWorker::LoadWorker(const LoadRun* run, int number, const v1::JoinResponse& joined, bool verify)
    : run_(run),
      number_(number),
      identity_(Identity(number)),
      epoch_(joined.epoch()),
      initial_state_(joined.snapshot().state_hash()),
      run_id_(joined.run_id()),
      uploads_(Connect(run->aggregator)),
      downloads_(Connect(run->aggregator)),
      received_(run->layout->segments()) {
  v1::SubscribeRoundsRequest request;
  if (!joined.mirrors().empty()) {
    request.set_objects(true);
    mirror_.emplace(ParseHttpUrl(joined.mirrors(0)).value(),
                    HttpClientOptions{.patience = absl::Minutes(1)});
  } else if (verify) {
    assembler_.emplace(run->layout, RoundId(0));
  }
  *request.mutable_worker() = identity_;
  request.set_run_id(joined.run_id());
  request.set_epoch(epoch_);
  subscription_ = std::make_unique<Subscription>(this, request);
  subscription_->Start(downloads_.get());
}

LoadWorker::~LoadWorker() = default;

void LoadWorker::Heartbeat() {
  v1::HeartbeatRequest request;
  *request.mutable_worker() = identity_;
  request.set_epoch(epoch_);
  {
    absl::MutexLock lock(&mu_);
    request.set_sequence(++heartbeats_);
    request.set_next_round(next_round_);
    request.set_log_hash(hash_);
  }
  v1::HeartbeatResponse response;
  grpc::ClientContext context;
  absl::Status status = FromGrpcStatus(run_->control->Heartbeat(&context, request, &response));
  if (status.ok() && response.directive() != v1::DIRECTIVE_CONTINUE)
    status = absl::FailedPreconditionError(absl::StrCat("heartbeat: ", response.reason()));
  absl::MutexLock lock(&mu_);
  if (!status.ok() && !followed_) Fail(status);
}

void LoadWorker::Cancel() {
  absl::MutexLock lock(&mu_);
  Fail(absl::CancelledError("another worker has failed"));
}

bool LoadWorker::AwaitEnd(absl::Duration timeout) const {
  absl::MutexLock lock(&mu_);
  return mu_.AwaitWithTimeout(
      absl::Condition(
          +[](const LoadWorker* self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(self->mu_) {
            return self->followed_ && self->upload_ == nullptr;
          },
          this),
      timeout);
}

absl::Status LoadWorker::status() const {
  absl::MutexLock lock(&mu_);
  return status_;
}

uint64_t LoadWorker::FirstSample(const v1::RoundOpen& open, const std::string& worker) {
  if (!open.step().has_deltas()) return 0;
  for (const v1::Slot& slot : open.slots()) {
    if (slot.worker() == worker) return slot.first_sample();
  }
  return 0;
}

absl::Status LoadWorker::Take(v1::SubscribeRoundsResponse frame) {
  const RoundId round(frame.round());
  if (frame.has_open()) {
    run_->times->Opened(round);
    Offer({.round = round, .first_sample = FirstSample(frame.open(), identity_.name())});
  }
  if (frame.has_segment()) DISTRO_RETURN_IF_ERROR(TakeSegment(round, frame.segment()));
  if (frame.has_commit()) DISTRO_RETURN_IF_ERROR(TakeCommit(round, frame.commit().header()));
  if (assembler_) return assembler_->Add(std::move(frame)).status();
  return absl::OkStatus();
}

absl::Status LoadWorker::TakeSegment(RoundId round, const v1::SegmentFrame& frame) {
  if (frame.segment() >= received_.size() || frame.offset() != received_[frame.segment()]) {
    return absl::DataLossError(absl::StrCat("round ", round.value(), ": segment ", frame.segment(),
                                            ": a frame at offset ", frame.offset()));
  }
  received_[frame.segment()] += frame.data().size();
  run_->times->Received(round, SegmentId(frame.segment()));
  return absl::OkStatus();
}

absl::Status LoadWorker::FetchObject(RoundId round, const v1::SegmentObject& object) {
  const SegmentId segment(object.segment());
  if (segment.value() >= received_.size()) return absl::DataLossError("an object of no segment");
  const std::string path = ObjectPath(
      {.run_id = run_id_, .result = ObjectName::Result{round, segment}, .sha256 = object.sha256()});
  Sha256Stream sha256;
  DISTRO_RETURN_IF_ERROR(mirror_->Get(path, 0, [&](uint64_t, absl::string_view bytes) {
    sha256.Update(bytes);
    received_[segment.value()] += bytes.size();
    run_->times->Received(round, segment);
    return absl::OkStatus();
  }));
  if (AsBytes(sha256.Finish()) == object.sha256()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, ": other bytes"));
}

absl::Status LoadWorker::TakeCommit(RoundId round, const std::string& bytes) {
  v1::RoundHeader header;
  if (!header.ParseFromString(bytes)) return absl::DataLossError("a commit cannot be parsed");
  DISTRO_RETURN_IF_ERROR(CheckCommit(header));
  uint64_t result_bytes = 0;
  for (uint64_t& received : received_) result_bytes += std::exchange(received, 0);
  const uint64_t hash = Xxh3(bytes);
  {
    absl::MutexLock lock(&mu_);
    if (round != RoundId(0) && header.predecessor_hash() != hash_)
      return absl::DataLossError(absl::StrCat("round ", round.value(), ": does not follow ours"));
    next_round_ = round.value() + 1;
    hash_ = hash;
  }
  return run_->times->Committed(round, hash, result_bytes);
}

// Checks that every segment includes all workers of the run, and that the result is complete.
absl::Status LoadWorker::CheckCommit(const v1::RoundHeader& header) {
  for (int s = 0; s < header.segments_size(); ++s) {
    const std::string where = absl::StrCat("round ", header.round(), ": segment ", s);
    if (header.segments(s).payload_bytes() != received_[s])
      return absl::DataLossError(absl::StrCat(where, ": ", received_[s], " bytes came"));
    int included = 0;
    for (const char byte : header.segments(s).included())
      included += std::popcount(static_cast<unsigned char>(byte));
    if (included != header.members_size())
      return absl::InternalError(absl::StrCat(where, ": only ", included, " are included"));
  }
  return absl::OkStatus();
}

void LoadWorker::SubscriptionEnded(const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  followed_ = true;
  if (!status.ok()) Fail(status);
}

void LoadWorker::Offer(OpenRound open) {
  absl::MutexLock lock(&mu_);
  if (upload_ != nullptr) {
    waiting_ = open;
  } else {
    StartUpload(open);
  }
}

void LoadWorker::StartUpload(OpenRound open) {
  upload_ = new Upload(this, open);
  upload_->Start(uploads_.get());
}

void LoadWorker::UploadEnded(const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  upload_ = nullptr;
  if (!status.ok()) Fail(status);
  const std::optional<OpenRound> next = std::exchange(waiting_, std::nullopt);
  if (next && status_.ok()) StartUpload(*next);
}

void LoadWorker::Fail(const absl::Status& status) {
  if (!status_.ok()) return;
  status_ = absl::Status(status.code(), absl::StrCat(identity_.name(), ": ", status.message()));
  if (upload_ != nullptr) upload_->Cancel();
  if (!followed_) subscription_->Cancel();
}

}  // namespace distro::bench
