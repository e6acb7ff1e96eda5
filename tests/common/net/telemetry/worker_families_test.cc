// The table of a worker's metrics against the message that carries them and the page that describes
// them.
#include "common/net/telemetry/worker_families.h"

#include <map>
#include <set>
#include <string>

#include "common/net/telemetry/metric_families.h"
#include "common/net/wire/worker_readings.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "tests/testing/metrics_doc.h"

namespace distro {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Every number another one, from `next` on, so that a row which reads the wrong field shows.
void Fill(Message* message, int* next) {
  const auto* reflection = message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      Fill(field->is_repeated() ? reflection->AddMessage(message, field)
                                : reflection->MutableMessage(message, field),
           next);
    } else if (field->is_repeated()) {
      for (int j = 0; j < 13; ++j) reflection->AddUInt64(message, field, 1);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64) {
      reflection->SetUInt64(message, field, (*next)++);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
      reflection->SetDouble(message, field, (*next)++);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      reflection->SetString(message, field, "1.2.3");
    }
  }
}

v1::WorkerTelemetry Full() {
  v1::WorkerTelemetry telemetry;
  int next = 1000;
  Fill(&telemetry, &next);
  return telemetry;
}

std::string Text(const v1::WorkerTelemetry& telemetry, const std::string& worker = "") {
  const WorkerReadings readings = {.worker = worker, .next_round = 7, .telemetry = &telemetry};
  return MetricsText(WorkerFamilies({&readings, 1}));
}

TEST(WorkerFamiliesTest, IsDocumented) {
  const v1::WorkerTelemetry telemetry = Full();
  const WorkerReadings readings = {
      .last_report_seconds = 1.0, .telemetry = &telemetry, .failed_writes = {{}}};
  EXPECT_THAT(testing::MetricsDocFaults(testing::MetricsPage(), WorkerFamilies({&readings, 1}),
                                        "distro_worker_"),
              IsEmpty());
}

TEST(WorkerFamiliesTest, ShowsNumbersOfMessageOnce) {
  int numbers = 0;
  v1::WorkerTelemetry telemetry;
  Fill(&telemetry, &numbers);
  std::map<double, int> shown;
  const WorkerReadings readings = {.next_round = 1'000'000, .telemetry = &telemetry};
  for (const auto& family : WorkerFamilies({&readings, 1})) {
    for (const auto& metric : family.metric) {
      if (family.type == prometheus::MetricType::Histogram) {
        ++shown[metric.histogram.sample_sum];
      } else if (family.name != "distro_worker_build_info") {
        ++shown[family.type == prometheus::MetricType::Counter ? metric.counter.value
                                                               : metric.gauge.value];
      }
    }
  }
  for (int i = 0; i < numbers; ++i) EXPECT_EQ(shown[i], 1) << i;
}

TEST(WorkerFamiliesTest, CountersAreThereFromTheStartAndStatesOnceTheyAreKnown) {
  const std::string text = Text({});
  EXPECT_THAT(text, HasSubstr("distro_worker_phase_seconds_total{phase=\"forward_backward\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("distro_worker_sent_bytes_total{kind=\"control\"} 0\n"));
  EXPECT_THAT(
      text, HasSubstr("distro_worker_retries_total{rpc=\"join\",code=\"deadline_exceeded\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("distro_worker_upload_duration_seconds_bucket{le=\"+Inf\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("distro_worker_round 7\n"));
  for (const char* absent : {"loss", "link_capacity", "memory_bytes", "gpu_", "collective_",
                             "last_report", "build_info"}) {
    EXPECT_THAT(text, Not(HasSubstr(std::string("distro_worker_") + absent))) << absent;
  }
}

TEST(WorkerFamiliesTest, NamesWorkerInLabel) {
  v1::WorkerTelemetry telemetry;
  telemetry.add_gpus()->set_memory_used_bytes(5);
  const std::string text = Text(telemetry, "w-1");
  EXPECT_THAT(text, HasSubstr("distro_worker_round{worker=\"w-1\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("distro_worker_gpu_memory_used_bytes{worker=\"w-1\",gpu=\"0\"} 5\n"));
}

TEST(WorkerFamiliesTest, BucketsAddUp) {
  v1::WorkerTelemetry telemetry;
  auto* durations = telemetry.mutable_transfer()->mutable_upload_durations();
  for (int i = 0; i < 13; ++i) durations->add_buckets(1);
  const std::string text = Text(telemetry);
  EXPECT_THAT(text, HasSubstr("distro_worker_upload_duration_seconds_bucket{le=\"0.1\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("distro_worker_upload_duration_seconds_bucket{le=\"160\"} 12\n"));
  EXPECT_THAT(text, HasSubstr("distro_worker_upload_duration_seconds_count 13\n"));
}

}  // namespace
}  // namespace distro
