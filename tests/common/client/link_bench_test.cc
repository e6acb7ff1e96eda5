// MeasureLink against faulty servers; tests/server/service/link_test.cc has a correct one.
#include "common/client/link_bench.h"

#include <atomic>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "distro/v1/link.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

// Answers this number of messages over all its streams, and then ends each stream with OK.
class EndsEarly final : public v1::LinkService::Service {
 public:
  explicit EndsEarly(int answers) : left_(answers) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~EndsEarly() override { server_->Shutdown(); }

  grpc::Status MeasureLink(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::MeasureLinkResponse, v1::MeasureLinkRequest>* stream) override {
    v1::MeasureLinkRequest request;
    uint64_t received = 0;
    while (stream->Read(&request) && left_.fetch_sub(1) > 0) {
      v1::MeasureLinkResponse answer;
      answer.set_received_bytes(received += request.data().size());
      answer.set_data(std::string(request.answer_bytes(), 'x'));
      stream->Write(answer);
    }
    return grpc::Status::OK;
  }
  absl::Status Measure() const {
    return distro::MeasureLink(
               {.channel = {.aggregator = absl::StrCat("127.0.0.1:", port_), .insecure = true},
                .update_bytes = 300'000,
                .result_bytes = 300'000},
               [](absl::string_view) {})
        .status();
  }

 private:
  std::atomic<int> left_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// 6 messages a round trip of either connection, then 5 a transfer.
TEST(LinkBenchTest, FailsWhenStreamEndsEarly) {
  EXPECT_TRUE(EndsEarly(1000).Measure().ok());
  for (const int answers : {0, 3, 9, 12, 14, 17, 20})
    EXPECT_EQ(EndsEarly(answers).Measure().code(), absl::StatusCode::kUnavailable) << answers;
}

}  // namespace
}  // namespace distro
