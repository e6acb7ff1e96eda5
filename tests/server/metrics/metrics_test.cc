// What /metrics exports is what docs/metrics.md says, in both directions.
#include "server/metrics/metrics.h"

#include <utility>

#include "common/base/version.h"
#include "gmock/gmock.h"
#include "server/metrics/part_metrics.h"
#include "tests/server/service/server_fixture.h"
#include "tests/testing/metrics_doc.h"

namespace distro::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

SegmentResult ResultOf(uint64_t votes, uint64_t entries, std::optional<uint64_t> agreement) {
  SegmentResult result;
  result.sent_positions = votes;
  result.entries = entries;
  result.agreement = agreement;
  return result;
}

TEST(AggregatorMetricsTest, IsDocumented) {
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
  header.mutable_step()->mutable_deltas()->set_caps("\1");
  metrics.OnRoundCommitted(
      {.header = &header, .duration = absl::Seconds(1), .loss = 2.5, .eval_loss = 2.75});
  metrics.SetCertificateExpiry(clock.WallNow());
  metrics.OnSegmentResult(ResultOf(2, 1, 1), {});
  auto families = metrics.Collect(host, folder.path());
  for (auto& family : server::StreamMetrics(server::StreamLimiter({}, &clock)))
    families.push_back(std::move(family));
  for (auto& family : server::ConnectionMetrics(server::ConnectionTable({})))
    families.push_back(std::move(family));
  EXPECT_THAT(MetricsDocFaults(MetricsPage(), families, "distro_aggregator_"), IsEmpty());
}

double ValueOf(const std::vector<prometheus::MetricFamily>& families, const std::string& name) {
  for (const auto& family : families) {
    if (family.name == name) return family.metric.at(0).gauge.value;
  }
  ADD_FAILURE() << name << " is not exported";
  return -1;
}

TEST(AggregatorMetricsTest, ShowsRoundOfLogAtStart) {
  ScratchFolder folder;
  FakeClock clock;
  Log log(LogLevel::kError, Clock::Real(), [](absl::string_view) {});
  const Layout layout = SmallLayout();
  TensorBuffer parameters(layout);
  ASSERT_TRUE(WriteCheckpointFolder(folder.File("model"), "{}", layout, parameters).ok());
  {
    auto store = *server::RunStore::Open(folder.File("data"), server::Disk::Real(), &clock, &log);
    ASSERT_TRUE(store->CreateRunFromFolder(SmallConfig(), folder.File("model")).ok());
    auto rounds =
        *server::RoundLog::Open(store->rounds_dir(), &layout, 0, server::Disk::Real(), &log);
    v1::StartHeader start;
    const Sha256Digest& hash = layout.manifest().hash();
    start.set_manifest_hash(std::string(hash.begin(), hash.end()));
    ASSERT_TRUE(rounds->WriteStart(start).ok());
    for (uint64_t t = 0; t < 3; ++t) {
      const BuiltRound round = BuildRound(layout, RoundId(t), rounds->HashBefore(RoundId(t)));
      auto writer = *rounds->Begin(RoundId(t));
      for (uint32_t s = 0; s < layout.segments(); ++s)
        ASSERT_TRUE(writer.AddSegment(SegmentId(s), round.payloads[s]).ok());
      ASSERT_TRUE(rounds->Commit(std::move(writer), round.header_bytes()).ok());
    }
  }
  server::AggregatorMetrics metrics(&clock, true);
  server::RunHost host(
      *server::RunStore::Open(folder.File("data"), server::Disk::Real(), &clock, &log), &clock,
      &log, &metrics, {}, [](absl::Status) {});
  EXPECT_EQ(ValueOf(metrics.Collect(host, folder.path()), "distro_aggregator_round"), 0);
  ASSERT_TRUE(host.Continue().ok());
  EXPECT_EQ(ValueOf(metrics.Collect(host, folder.path()), "distro_aggregator_round"), 3);
}

// An aggregator that has no run yet.
class MetricsWithoutRunTest : public ::testing::Test {
 protected:
  std::vector<prometheus::MetricFamily> Families() {
    return metrics_.Collect(host_, folder_.path());
  }

  ScratchFolder folder_;
  FakeClock clock_;
  Log log_{LogLevel::kError, Clock::Real(), [](absl::string_view) {}};
  server::AggregatorMetrics metrics_{&clock_, true};
  server::RunHost host_{
      *server::RunStore::Open(folder_.File("data"), server::Disk::Real(), &clock_, &log_),
      &clock_,
      &log_,
      &metrics_,
      {},
      [](absl::Status) {}};
};

TEST_F(MetricsWithoutRunTest, ShowsTheLeastAndTheLargestCapOfARoundOfDeltas) {
  const auto caps = [&](const std::string& of_round) {
    v1::RoundHeader header;
    if (!of_round.empty()) header.mutable_step()->mutable_deltas()->set_caps(of_round);
    metrics_.OnRoundCommitted({.header = &header, .duration = absl::Seconds(1), .loss = 2.5});
    std::map<std::string, double> shown;
    for (const auto& family : Families()) {
      if (family.name != "distro_aggregator_scale_cap") continue;
      for (const auto& metric : family.metric) shown[metric.label[0].value] = metric.gauge.value;
    }
    return shown;
  };
  // M(160) is 8 * 2^28 units of 2^-44, M(200) and M(255) 8 * 2^33 and 15 * 2^39.
  EXPECT_THAT(caps("\xc8\xa0\xff"),
              UnorderedElementsAre(Pair("least", 0x1p-13), Pair("largest", 15 * 0x1p-5)));
  EXPECT_THAT(caps("\xc8"), UnorderedElementsAre(Pair("least", 0x1p-8), Pair("largest", 0x1p-8)));
  EXPECT_THAT(caps(""), IsEmpty()) << "signs have none";
}

// An alert counts from there: after a pause the last commit may be days old.
TEST_F(MetricsWithoutRunTest, SaysWhenARoundOpened) {
  const auto opened = [&] {
    return ValueOf(Families(), "distro_aggregator_round_opened_timestamp_seconds");
  };
  EXPECT_EQ(opened(), 0);
  clock_.Advance(absl::Seconds(90));
  metrics_.OnRoundOpened(RoundId(3), 2);
  EXPECT_EQ(opened(), absl::ToDoubleSeconds(clock_.WallNow() - absl::UnixEpoch()));
}

TEST_F(MetricsWithoutRunTest, ShowsOnlyWhatIsKnown) {
  const auto shown = [&] { return MetricValues(Families()); };
  for (const char* name : {"tls_certificate_expiry_timestamp_seconds", "result_size_bytes",
                           "union_entries_ratio", "sign_agreement_ratio", "loss", "eval_loss"}) {
    EXPECT_EQ(shown().Find(absl::StrCat("distro_aggregator_", name)), std::nullopt) << name;
  }
  metrics_.OnSegmentResult(ResultOf(4, 2, std::nullopt), {});
  EXPECT_EQ(shown().Find("distro_aggregator_union_entries_ratio"), 0.5);
  EXPECT_EQ(shown().Find("distro_aggregator_sign_agreement_ratio"), std::nullopt) << "of deltas";
  v1::RoundHeader header;
  metrics_.OnRoundCommitted({.header = &header, .duration = absl::Seconds(1), .loss = 2.5});
  EXPECT_EQ(shown().Find("distro_aggregator_loss"), 2.5);
  metrics_.OnRoundCommitted({.header = &header, .duration = absl::Seconds(1), .loss = {}});
  EXPECT_EQ(shown().Find("distro_aggregator_loss"), std::nullopt) << "of the round before";
  EXPECT_EQ(shown().Find("distro_aggregator_dropped_values_total"), 0);
}

TEST_F(MetricsWithoutRunTest, CountsTheWorkersThatRecordsNamedLast) {
  const auto commit = [&](uint64_t round, const std::vector<std::string>& names) {
    v1::RoundHeader header;
    header.set_round(round);
    for (const std::string& name : names) header.add_members()->set_name(name);
    header.add_segments()->set_included(std::string(names.size() / 8 + 1, '\xff'));
    metrics_.OnRoundCommitted({.header = &header, .duration = absl::Seconds(1), .loss = 2.5});
  };
  std::vector<std::string> names;
  for (size_t i = 0; i <= server::kMaxCountedWorkers; ++i) names.push_back(std::to_string(i));
  commit(0, names);  // the last is one too many
  commit(1, {"1", "new"});
  std::map<std::string, double> counted;
  for (const auto& family : Families()) {
    if (family.name != "distro_aggregator_worker_included_updates_total") continue;
    for (const auto& metric : family.metric) counted[metric.label[0].value] = metric.counter.value;
  }
  EXPECT_EQ(counted.size(), server::kMaxCountedWorkers);
  EXPECT_EQ(counted["1"], 2);
  EXPECT_EQ(counted["new"], 1);
  EXPECT_FALSE(counted.contains("0"));
}

}  // namespace
}  // namespace distro::testing
