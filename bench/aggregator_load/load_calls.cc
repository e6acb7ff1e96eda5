#include "bench/aggregator_load/load_calls.h"

#include <algorithm>
#include <utility>

#include "common/net/rpc/status.h"
#include "common/net/wire/frames.h"

namespace distro::bench {

LoadWorker::Subscription::Subscription(LoadWorker* worker,
                                       const v1::SubscribeRoundsRequest& request)
    : worker_(worker), request_(request) {}

void LoadWorker::Subscription::Start(Stub* stub) {
  stub->async()->SubscribeRounds(&context_, &request_, this);
  StartRead(&frame_);
  StartCall();
}

void LoadWorker::Subscription::OnReadDone(bool ok) {
  if (!ok) return;
  if (!frame_.has_object()) return Taken(worker_->Take(std::move(frame_)));
  if (fetch_.joinable()) fetch_.join();  // it has ended, or is about to: it started this read
  AddHold();
  fetch_ = std::thread([this] {
    Taken(worker_->FetchObject(RoundId(frame_.round()), frame_.object()));
    RemoveHold();
  });
}

void LoadWorker::Subscription::Taken(const absl::Status& status) {
  taken_ = status;
  if (!taken_.ok()) return context_.TryCancel();
  StartRead(&frame_);
}

LoadWorker::Subscription::~Subscription() {
  if (fetch_.joinable()) fetch_.join();
}

void LoadWorker::Subscription::OnDone(const grpc::Status& status) {
  worker_->SubscriptionEnded(taken_.ok() ? FromGrpcStatus(status) : taken_);
}

LoadWorker::Upload::Upload(LoadWorker* worker, OpenRound open)
    : worker_(worker), round_(open.round) {
  v1::UploadHeader* const header = request_.mutable_header();
  *header->mutable_worker() = worker->identity_;
  header->set_epoch(worker->epoch_);
  header->set_round(round_.value());
  header->set_first_sample(open.first_sample);
  // There are no parameters: from round 1 on all workers report the same invented hash.
  header->set_state_hash(round_ == RoundId(0) ? worker->initial_state_ : round_.value());
  header->set_loss(2);
}

void LoadWorker::Upload::Start(Stub* stub) {
  stub->async()->UploadUpdate(&context_, this);
  StartRead(&response_);
  StartWrite(&request_);
  StartCall();
}

void LoadWorker::Upload::OnReadDone(bool ok) {
  if (!ok) return;
  if (!std::exchange(answered_, true)) {
    PlanSegments(response_.held());
    HalfGreeted();
  } else {
    worker_->run_->times->Acknowledged(round_, SegmentId(response_.ack().segment()));
  }
  StartRead(&response_);
}

void LoadWorker::Upload::PlanSegments(const v1::UploadHeld& held) {
  const uint32_t segments = worker_->run_->layout->segments();
  for (uint32_t i = segments; i-- > 0;) {
    const auto segment = static_cast<uint32_t>((round_.value() + i) % segments);
    if (std::ranges::find(held.segments(), segment) == held.segments().end())
      todo_.push_back(segment);
  }
}

void LoadWorker::Upload::WriteNext() {
  if (todo_.empty()) return StartWritesDone();
  const SegmentId segment(todo_.back());
  if (sent_bytes_ == 0) {
    payload_ =
        worker_->run_->updates->Payload(worker_->number_ - worker_->run_->first, round_, segment);
  }
  const uint64_t bytes = FrameBytes(sent_bytes_, payload_.size());
  v1::UploadFrame* const frame = request_.mutable_frame();
  frame->set_segment(segment.value());
  frame->set_offset(sent_bytes_);
  frame->set_payload_bytes(payload_.size());
  frame->set_data(payload_.data() + sent_bytes_, bytes);
  sent_bytes_ += bytes;
  StartWrite(&request_);
}

void LoadWorker::Upload::HalfGreeted() {
  if (--greetings_ == 0) WriteNext();
}

void LoadWorker::Upload::OnWriteDone(bool ok) {
  if (!ok) return;
  if (request_.has_header()) return HalfGreeted();
  if (sent_bytes_ == payload_.size()) {
    worker_->run_->times->Sent(round_, SegmentId(todo_.back()));
    todo_.pop_back();
    sent_bytes_ = 0;
  }
  WriteNext();
}

void LoadWorker::Upload::OnDone(const grpc::Status& status) {
  worker_->UploadEnded(FromGrpcStatus(status));
  delete this;
}

}  // namespace distro::bench
