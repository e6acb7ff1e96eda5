// The two streams of a synthetic worker (load_worker.h), as gRPC reactors. Each reports its final
// status to its worker, once.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "bench/aggregator_load/load_worker.h"
#include "distro/v1/aggregator.grpc.pb.h"
#include "grpcpp/support/client_callback.h"

namespace distro::bench {

// Hands each frame to the worker; an error of Take cancels the stream. An object is fetched on a
// thread of its own, and the next frame read after it.
class LoadWorker::Subscription final : public grpc::ClientReadReactor<v1::SubscribeRoundsResponse> {
 public:
  Subscription(LoadWorker* worker, const v1::SubscribeRoundsRequest& request);
  void Start(Stub* stub);
  void Cancel() { context_.TryCancel(); }

  ~Subscription() override;
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  void Taken(const absl::Status& status);

  LoadWorker* const worker_;
  const v1::SubscribeRoundsRequest request_;
  std::thread fetch_;  // of the last object
  grpc::ClientContext context_;
  v1::SubscribeRoundsResponse frame_;
  absl::Status taken_;
};

// Uploads the update of one round: the header, then each segment that the aggregator does not have,
// starting with segment round % segments. Deletes itself when it has ended.
class LoadWorker::Upload final
    : public grpc::ClientBidiReactor<v1::UploadUpdateRequest, v1::UploadUpdateResponse> {
 public:
  Upload(LoadWorker* worker, OpenRound open);
  void Start(Stub* stub);
  void Cancel() { context_.TryCancel(); }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  void PlanSegments(const v1::UploadHeld& held);
  // One half of the greeting is over; segments follow the second.
  void HalfGreeted();
  // Writes the next frame, or says that there are no more.
  void WriteNext();

  LoadWorker* const worker_;
  const RoundId round_;
  grpc::ClientContext context_;
  v1::UploadUpdateRequest request_;
  v1::UploadUpdateResponse response_;
  // Missing halves of the greeting, of two: the header is written, and it is answered. They come in
  // either order, on two threads.
  std::atomic<int> greetings_ = 2;
  bool answered_ = false;
  std::vector<uint32_t> todo_;  // the next segment is the last of them
  std::string payload_;         // of the segment that is being sent
  uint64_t sent_bytes_ = 0;     // of it
};

}  // namespace distro::bench
