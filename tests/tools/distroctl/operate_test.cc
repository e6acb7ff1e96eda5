// The commands against a real aggregator.
#include "tools/distroctl/operate.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/service/server_fixture.h"
#include "tools/distroctl/workers.h"

namespace distro::tools {
namespace {

using absl::StatusCode;
using ::testing::AllOf;
using ::testing::HasSubstr;

class OperateTest : public testing::ServerTest {
 protected:
  void Connect(const v1::RunConfig& config = testing::SmallConfig()) {
    Start(config);
    admin_ = v1::AdminService::NewStub(testing::TestChannel(server_->grpc_address()));
  }
  static v1::RunConfig TwoWorkers() {
    v1::RunConfig config = testing::SmallConfig();
    config.set_start_workers(2);
    return config;
  }
  std::string ShownWorkers() {
    const auto sample = AskForWorkers(admin_.get(), absl::Now());
    return sample.ok() ? WorkersReport(*sample, nullptr).text : sample.status().ToString();
  }
  std::unique_ptr<v1::AdminService::Stub> admin_;
};

TEST_F(OperateTest, PausesAcrossRestart) {
  Connect();
  const auto line = PauseRun(admin_.get(), "new switch");
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_THAT(line->text, HasSubstr("distroctl run resume"));
  ASSERT_TRUE(PauseRun(admin_.get(), "newer switch").ok()) << "a repeat is harmless";
  Connect();
  const auto paused = ShowRun(admin_.get());
  ASSERT_TRUE(paused.ok()) << paused.status();
  EXPECT_THAT(paused->text, AllOf(HasSubstr("paused"), HasSubstr("newer switch")));
  ASSERT_TRUE(ResumeRun(admin_.get()).ok());
  ASSERT_TRUE(ResumeRun(admin_.get()).ok());
  EXPECT_THAT(ShowRun(admin_.get())->text, Not(HasSubstr("paused")));
}

TEST_F(OperateTest, EvictsAndAdmitsWorker) {
  Connect(TwoWorkers());
  const auto worker = NewActive("w1");
  const auto line = EvictWorker(admin_.get(), "w1", "bad memory");
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_THAT(line->text, HasSubstr("distroctl admit w1"));
  const v1::HeartbeatResponse answer = worker->Heartbeat(0, 0);
  EXPECT_EQ(answer.directive(), v1::DIRECTIVE_QUARANTINED);
  EXPECT_THAT(answer.reason(), HasSubstr("bad memory"));
  EXPECT_EQ(worker->Join().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(ShownWorkers(), AllOf(HasSubstr("quarantined"), HasSubstr("bad memory")));

  Connect(TwoWorkers());
  EXPECT_EQ(NewWorker("w1", 8)->Join().code(), StatusCode::kPermissionDenied) << "after a restart";
  ASSERT_TRUE(AdmitWorker(admin_.get(), "w1").ok());
  EXPECT_TRUE(NewWorker("w1", 8)->Join().ok());
}

TEST_F(OperateTest, EvictsUnknownName) {
  Connect();
  ASSERT_TRUE(EvictWorker(admin_.get(), "later", "").ok());
  EXPECT_EQ(NewWorker("later")->Join().code(), StatusCode::kPermissionDenied);
}

TEST_F(OperateTest, RefusesToAdmitUnknownName) {
  Connect();
  EXPECT_EQ(AdmitWorker(admin_.get(), "w1").status().code(), StatusCode::kNotFound);
}

TEST_F(OperateTest, BadNamesAndLongReasonsAreInvalid) {
  Connect();
  EXPECT_EQ(EvictWorker(admin_.get(), "W1", "").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(AdmitWorker(admin_.get(), "").status().code(), StatusCode::kInvalidArgument);
  const std::string reason(201, 'x');
  EXPECT_EQ(EvictWorker(admin_.get(), "w1", reason).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(PauseRun(admin_.get(), reason).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace distro::tools
