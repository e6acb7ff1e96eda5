// A record that is damaged after the start has verified the log, over real gRPC.
#include "common/base/file.h"
#include "common/base/reason.h"
#include "common/net/http/http_get.h"
#include "gmock/gmock.h"
#include "tests/server/service/server_fixture.h"

namespace distro::testing {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;
using ::testing::Not;

class DamagedLogTest : public ServerTest {
 protected:
  std::string Get(const std::string& path) {
    return HttpGet(server_->http_address(), path, absl::Seconds(20), 1 << 20)->body;
  }
};

// A restarted aggregator reads the log from the disk, and a joining worker needs every round of it.
TEST_F(DamagedLogTest, IsToldAndNotServed) {
  v1::RunConfig config = SmallConfig();
  config.set_start_workers(1);
  Start(config);
  {
    auto a = NewActive("a");
    auto rounds = a->Subscribe(&layout_);
    for (uint64_t r = 0; r < 3; ++r) {
      ASSERT_TRUE(rounds->NextOpen().ok());
      ASSERT_TRUE(a->Upload(r, Payloads(r, r)).status.ok());
      ASSERT_TRUE(rounds->NextCommit().ok());
    }
  }
  Start(config);
  const std::string path = folder_.File("data/rounds/0000000000.record");
  const std::string good = *ReadFile(path);
  std::string bad = good;
  bad.at(20) ^= 1;
  ASSERT_TRUE(WriteFileAtomically(path, bad).ok());
  auto b = NewWorker("b");
  ASSERT_TRUE(b->Join().ok());
  for (int i = 0; i < 3; ++i) {
    const absl::Status status = b->Subscribe(&layout_)->NextCommit().status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status;
    EXPECT_EQ(ReasonOf(status), "damaged");
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr(folder_.path())));
  }
  EXPECT_THAT(Get("/metrics"), HasSubstr("distro_aggregator_log_damaged_records 1"));
  EXPECT_THAT(Get("/readyz?verbose"), HasSubstr("[-] log: 1 records are damaged"));
  ASSERT_TRUE(WriteFileAtomically(path, good).ok());
  auto rounds = b->Subscribe(&layout_);
  for (uint64_t r = 0; r < 3; ++r) EXPECT_EQ(rounds->NextCommit()->round(), RoundId(r));
  EXPECT_THAT(Get("/metrics"), HasSubstr("distro_aggregator_log_damaged_records 0"));
}

}  // namespace
}  // namespace distro::testing
