// What /metrics exports is what docs/metrics.md says, in both directions.
#include "server/metrics.h"
#include "server/stream_metrics.h"

#include "common/base/version.h"
#include "gmock/gmock.h"
#include "tests/server/service/server_fixture.h"
#include "tests/testing/metrics_doc.h"

namespace distro::testing {
namespace {

using ::testing::IsEmpty;

TEST(AggregatorMetricsTest, ThePageDescribesEveryMetric) {
  ScratchFolder folder;
  FakeClock clock;
  Log log(LogLevel::kError, Clock::Real(), [](absl::string_view) {});
  const Layout layout = SmallLayout();
  TensorBuffer parameters(layout);
  ASSERT_TRUE(WriteCheckpointFolder(folder.File("model"), "{}", layout, parameters).ok());
  server::AggregatorMetrics metrics(&clock, true);
  server::RunHost host(
      *server::RunStore::Open(folder.File("data"), server::Disk::Real(), &clock, &log), &clock,
      &log, &metrics, {}, [](absl::Status) {});
  ASSERT_TRUE(host.CreateFromFolder(SmallConfig(), folder.File("model")).ok());
  v1::JoinRequest join;
  join.mutable_worker()->set_name("a");
  join.mutable_worker()->set_incarnation(1);
  join.set_data_fingerprint("data");
  join.set_version(std::string(Version()));
  ASSERT_TRUE(host.manager()->Join(join).ok());
  v1::RoundHeader header;
  header.add_members()->set_name("a");
  header.add_segments()->set_included("\1");
  metrics.OnRoundCommitted({.header = &header, .duration = absl::Seconds(1), .loss = 2.5, .eval_loss = 2.75});
  auto families = metrics.Collect(host, folder.path());
  for (auto& family : server::StreamMetrics(server::StreamGate({}, &clock)))
    families.push_back(std::move(family));
  EXPECT_THAT(MetricsDocFaults(MetricsPage(), families, "distro_aggregator_"), IsEmpty());
}

}  // namespace
}  // namespace distro::testing
