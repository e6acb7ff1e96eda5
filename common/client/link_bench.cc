#include "common/client/link_bench.h"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/client/channel.h"
#include "common/net/rpc/status.h"
#include "distro/v1/link.grpc.pb.h"

namespace distro {
namespace {

using Stream = grpc::ClientReaderWriterInterface<v1::MeasureLinkRequest, v1::MeasureLinkResponse>;

constexpr uint64_t kMessageBytes = 64 * 1024;
constexpr uint64_t kMaxTransferBytes = uint64_t{255} << 20;  // below the aggregator's limit
constexpr uint64_t kMinTransferBytes = 64 * 1024;            // fewer would measure the round trip
constexpr int kRoundTrips = 5;
constexpr absl::Duration kConnectTimeout = absl::Seconds(20);
// 1.2 B parameters, K = 4; 32 workers, the 32 strongest votes of a block.
constexpr uint64_t kDefaultUpdateBytes = 1'770'000;
constexpr uint64_t kDefaultResultBytes = 11'000'000;

absl::Duration Now() { return Clock::Real()->MonotonicNow(); }

enum class Direction { kUp, kDown };

// The answer is untrusted: compares it with the request before it is used.
absl::Status CheckAnswer(const v1::MeasureLinkResponse& answer, uint64_t sent, uint64_t asked) {
  if (answer.received_bytes() <= sent && answer.data().size() == asked) return absl::OkStatus();
  return absl::InternalError("the aggregator's answer has other sizes than were asked for");
}

// A proxy ended the stream, or the aggregator is stopping: not a measurement, even if the status is
// OK.
absl::Status EndedEarly() {
  return absl::UnavailableError(
      "the aggregator ended the stream before all bytes were transferred: measure again");
}

// One connection that moves bytes in one direction.
class Lane {
 public:
  static absl::StatusOr<std::unique_ptr<Lane>> Open(const ChannelOptions& options) {
    DISTRO_ASSIGN_OR_RETURN(auto channel, OpenChannel(options));
    return std::make_unique<Lane>(v1::LinkService::NewStub(channel));
  }
  explicit Lane(std::unique_ptr<v1::LinkService::Stub> stub)
      : stub_(std::move(stub)), noise_(kMessageBytes, '\0') {
    for (size_t i = 0; i < noise_.size(); ++i) noise_[i] = static_cast<char>(SplitMix64(2, i));
  }

  // The fastest of a few round trips of an empty message on an open connection. Fills in the run's
  // needs.
  absl::StatusOr<double> RoundTrip(v1::LinkNeeds* needs) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kConnectTimeout));
    const std::unique_ptr<Stream> stream = stub_->MeasureLink(&context);
    v1::MeasureLinkResponse answer;
    absl::Duration fastest = absl::InfiniteDuration();
    bool going = true;
    for (int i = 0; going && i <= kRoundTrips; ++i) {  // the first one also connects
      const absl::Duration begin = Now();
      going = stream->Write({}) && stream->Read(&answer);
      if (going && i > 0) fastest = std::min(fastest, Now() - begin);
      if (answer.has_needs()) *needs = answer.needs();
    }
    stream->WritesDone();
    DISTRO_RETURN_IF_ERROR(FromGrpcStatus(stream->Finish()));
    if (!going) return EndedEarly();
    return absl::ToDoubleSeconds(fastest);
  }

  // Moves `bytes`, or as many as pass within `limit`.
  absl::StatusOr<LinkTransfer> Transfer(Direction direction, uint64_t bytes, absl::Duration limit) {
    grpc::ClientContext context;
    const absl::Duration begin = Now();
    context.set_deadline(absl::ToChronoTime(absl::Now() + limit));
    const std::unique_ptr<Stream> stream = stub_->MeasureLink(&context);
    std::jthread writer([&] { Write(direction, bytes, stream.get()); });
    LinkTransfer moved;
    const absl::Status wrong = ReadAnswers(direction, bytes, begin, stream.get(), &moved);
    if (!wrong.ok()) context.TryCancel();
    writer.join();
    const absl::Status status = FromGrpcStatus(stream->Finish());
    DISTRO_RETURN_IF_ERROR(wrong);
    const bool enough = absl::IsDeadlineExceeded(status) && moved.bytes > 0;
    if (!status.ok() && !enough) return status;
    if (!enough && moved.bytes != bytes) return EndedEarly();
    return moved;
  }

 private:
  void Write(Direction direction, uint64_t bytes, Stream* stream) const {
    v1::MeasureLinkRequest request;
    for (uint64_t left = bytes; left > 0;) {
      const uint64_t now = std::min(left, kMessageBytes);
      if (direction == Direction::kUp) {
        request.set_data(noise_.data(), now);
      } else {
        request.set_answer_bytes(static_cast<uint32_t>(now));
      }
      if (!stream->Write(request)) return;
      left -= now;
    }
    stream->WritesDone();
  }

  static absl::Status ReadAnswers(Direction direction, uint64_t bytes, absl::Duration begin,
                                  Stream* stream, LinkTransfer* moved) {
    v1::MeasureLinkResponse answer;
    while (stream->Read(&answer)) {
      const bool up = direction == Direction::kUp;
      const uint64_t asked = up ? 0 : std::min(bytes - moved->bytes, kMessageBytes);
      DISTRO_RETURN_IF_ERROR(CheckAnswer(answer, up ? bytes : 0, asked));
      moved->bytes = up ? answer.received_bytes() : moved->bytes + asked;
      moved->seconds = absl::ToDoubleSeconds(Now() - begin);
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<v1::LinkService::Stub> stub_;
  std::string noise_;  // incompressible
};

uint64_t Measured(uint64_t bytes) {
  return std::clamp(bytes, kMinTransferBytes, kMaxTransferBytes);
}

uint64_t FirstSet(uint64_t a, uint64_t b, uint64_t c) { return a != 0 ? a : b != 0 ? b : c; }

// Used before the first round has closed: the updates of all workers together, which a result
// hardly exceeds.
uint64_t ExpectedResult(const v1::LinkNeeds& needs) {
  return FirstSet(needs.result_bytes(), needs.update_bytes() * std::max(1u, needs.workers()), 0);
}

absl::Status Together(Lane* up, Lane* down, absl::Duration limit, LinkMeasurement* result) {
  absl::StatusOr<LinkTransfer> uploaded;
  std::jthread uploads(
      [&] { uploaded = up->Transfer(Direction::kUp, Measured(result->update_bytes), limit); });
  auto downloaded = down->Transfer(Direction::kDown, Measured(result->result_bytes), limit);
  uploads.join();
  DISTRO_ASSIGN_OR_RETURN(result->up_together, uploaded);
  DISTRO_ASSIGN_OR_RETURN(result->down_together, downloaded);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LinkMeasurement> MeasureLink(
    const LinkBenchOptions& options, const std::function<void(absl::string_view)>& progress) {
  const absl::Duration limit = options.transfer_limit;
  if (limit < absl::Milliseconds(100) || limit > absl::Seconds(60))
    return absl::InvalidArgumentError("--transfer_limit: is outside 100ms to 60s");
  DISTRO_ASSIGN_OR_RETURN(const std::unique_ptr<Lane> up, Lane::Open(options.channel));
  DISTRO_ASSIGN_OR_RETURN(const std::unique_ptr<Lane> down, Lane::Open(options.channel));
  LinkMeasurement result;
  DISTRO_RETURN_IF_ERROR(down->RoundTrip(&result.needs).status());
  DISTRO_ASSIGN_OR_RETURN(result.round_trip_seconds, up->RoundTrip(&result.needs));
  result.update_bytes =
      FirstSet(options.update_bytes, result.needs.update_bytes(), kDefaultUpdateBytes);
  result.result_bytes =
      FirstSet(options.result_bytes, ExpectedResult(result.needs), kDefaultResultBytes);
  progress(absl::StrCat("measuring with ", result.update_bytes, " bytes up and ",
                        result.result_bytes, " bytes down"));
  DISTRO_ASSIGN_OR_RETURN(result.up_alone,
                          up->Transfer(Direction::kUp, Measured(result.update_bytes), limit));
  DISTRO_ASSIGN_OR_RETURN(result.down_alone,
                          down->Transfer(Direction::kDown, Measured(result.result_bytes), limit));
  DISTRO_RETURN_IF_ERROR(Together(up.get(), down.get(), limit, &result));
  return result;
}

}  // namespace distro
