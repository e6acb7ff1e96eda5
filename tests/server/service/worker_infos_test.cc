#include "server/service/worker_infos.h"

#include <limits>
#include <memory>

#include "absl/strings/str_format.h"
#include "common/net/wire/frames.h"
#include "common/net/wire/worker_readings.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"

namespace distro::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr size_t kMaxAnswerBytes = 2 * kMaxMessageBytes;  // that OpenChannel takes

// The largest values of all fields.
void Fill(Message* message) {
  const auto* reflection = message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    if (field->is_repeated()) continue;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE)
      reflection->SetDouble(message, field, 1e300);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64)
      reflection->SetUInt64(message, field, std::numeric_limits<uint64_t>::max());
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
      Fill(reflection->MutableMessage(message, field));
  }
}

std::shared_ptr<const v1::WorkerTelemetry> LargestReadings() {
  auto readings = std::make_shared<v1::WorkerTelemetry>();
  Fill(readings.get());
  readings->set_version(std::string(32, '9'));
  for (uint32_t i = 0; i < 64; ++i) {
    v1::GpuTelemetry* gpu = readings->add_gpus();
    Fill(gpu);
    gpu->set_index(std::numeric_limits<uint32_t>::max() - i);
  }
  for (auto* durations : {readings->mutable_transfer()->mutable_upload_durations(),
                          readings->mutable_transfer()->mutable_download_durations()})
    durations->mutable_buckets()->Resize(kDurationBuckets, uint64_t{1} << 59);
  EXPECT_EQ(RepairTelemetry({}, readings.get()), 0);
  return readings;
}

Worker WorkerOf(int i, v1::MemberState state) {
  return {.name = absl::StrFormat("%064d", i),
          .incarnation = 1,
          .state = state,
          .reason = std::string(300, 'r'),
          .last_seen = absl::Seconds(1)};
}

WorkerReport ReportOf(const std::string& worker,
                      const std::shared_ptr<const v1::WorkerTelemetry>& readings) {
  WorkerReport report;
  report.worker = worker;
  report.incarnation = 1;
  report.telemetry = readings;
  return report;
}

TEST(WorkerInfosTest, ReadingsAreThoseOfThePresentProcess) {
  RunStatus status;
  status.workers = {WorkerOf(1, v1::MEMBER_STATE_ACTIVE), WorkerOf(2, v1::MEMBER_STATE_ACTIVE)};
  status.workers[1].incarnation = 2;
  auto readings = std::make_shared<v1::WorkerTelemetry>();
  readings->set_tokens(7);
  readings->mutable_transfer()->set_reconnects(3);
  readings->add_gpus();
  const std::vector<WorkerReport> reports = {ReportOf(status.workers[0].name, readings),
                                             ReportOf(status.workers[1].name, readings)};
  const v1::ListWorkersResponse list = WorkerInfos(status, reports);
  ASSERT_EQ(list.workers_size(), 2);
  EXPECT_EQ(list.left_out(), 0u);
  EXPECT_EQ(list.workers(0).telemetry().tokens(), 7u);
  EXPECT_EQ(list.workers(0).telemetry().transfer().reconnects(), 3u);
  EXPECT_EQ(list.workers(0).telemetry().gpus_size(), 0);
  EXPECT_FALSE(list.workers(1).has_telemetry());
}

TEST(WorkerInfosTest, CountsSilenceSinceStart) {
  RunStatus status;
  status.now = absl::Hours(100);
  status.workers = {WorkerOf(1, v1::MEMBER_STATE_ACTIVE), WorkerOf(2, v1::MEMBER_STATE_LEFT)};
  status.workers[1].last_seen = absl::ZeroDuration();
  status.since = {absl::ZeroDuration(), absl::Hours(99)};
  const v1::ListWorkersResponse list = WorkerInfos(status, {});
  EXPECT_EQ(list.workers(0).silence().seconds(), 359'999);
  EXPECT_EQ(list.workers(1).silence().seconds(), 3600) << "and not the machine's uptime";
}

TEST(WorkerInfosTest, FitsIntoMessage) {
  const auto readings = LargestReadings();
  RunStatus status;
  std::vector<WorkerReport> reports;
  for (int i = 0; i < static_cast<int>(WorkerReports::kDefaultMax); ++i) {
    status.workers.push_back(WorkerOf(i, v1::MEMBER_STATE_ACTIVE));
    reports.push_back(ReportOf(status.workers.back().name, readings));
  }
  v1::ListWorkersResponse list = WorkerInfos(status, reports);
  EXPECT_EQ(list.workers_size(), 1024);
  EXPECT_EQ(list.left_out(), 0u);
  EXPECT_TRUE(list.workers(1023).has_telemetry());
  EXPECT_LT(list.ByteSizeLong(), kMaxAnswerBytes);
  const size_t with = list.ByteSizeLong();
  for (v1::WorkerInfo& info : *list.mutable_workers()) info.clear_telemetry();
  EXPECT_LT(with - list.ByteSizeLong(), kMaxReadingsBytes);
}

TEST(WorkerInfosTest, NamesHowManyDoNotFitAndKeepsThoseInSession) {
  RunStatus status;
  for (int i = 0; i < 1000; ++i) {
    status.workers.push_back(WorkerOf(2 * i, v1::MEMBER_STATE_ACTIVE));
    status.workers.push_back(WorkerOf(2 * i + 1, v1::MEMBER_STATE_LEFT));
  }
  for (int i = 2000; i < 4000; ++i)
    status.workers.push_back(WorkerOf(i, v1::MEMBER_STATE_QUARANTINED));
  const v1::ListWorkersResponse list = WorkerInfos(status, {});
  EXPECT_EQ(list.workers_size() + list.left_out(), 4000u);
  EXPECT_GT(list.left_out(), 1000u);
  EXPECT_LE(list.ByteSizeLong(), kMaxInfosBytes);
  int active = 0;
  for (int i = 0; i < list.workers_size(); ++i) {
    active += list.workers(i).state() == v1::MEMBER_STATE_ACTIVE ? 1 : 0;
    if (i > 0) {
      EXPECT_LT(list.workers(i - 1).name(), list.workers(i).name());
    }
  }
  EXPECT_EQ(active, 1000);
}

}  // namespace
}  // namespace distro::server
