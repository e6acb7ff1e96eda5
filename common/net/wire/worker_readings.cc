#include "common/net/wire/worker_readings.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "google/protobuf/descriptor.h"

namespace distro {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kMaxGpus = 64;
constexpr size_t kMaxVersionBytes = 32;

int RepairDouble(const Message& before, const FieldDescriptor* field, Message* message) {
  const Reflection* reflection = message->GetReflection();
  const double value = reflection->GetDouble(*message, field);
  const double last = reflection->GetDouble(before, field);
  const bool counter = !field->has_presence();
  if (std::isfinite(value) && value >= (counter ? last : 0.0)) return 0;
  if (counter || reflection->HasField(before, field)) {
    reflection->SetDouble(message, field, last);
  } else {
    reflection->ClearField(message, field);
  }
  return 1;
}

int RepairCount(const Message& before, const FieldDescriptor* field, Message* message) {
  const Reflection* reflection = message->GetReflection();
  const uint64_t last = reflection->GetUInt64(before, field);
  if (field->has_presence() || reflection->GetUInt64(*message, field) >= last) return 0;
  reflection->SetUInt64(message, field, last);
  return 1;
}

// Whether the counts add up without overflow, since readers sum them.
bool SumFits(const v1::DurationHistogram& durations) {
  uint64_t sum = 0;
  return std::ranges::all_of(durations.buckets(), [&sum](uint64_t count) {
    return !__builtin_add_overflow(sum, count, &sum);
  });
}

int RepairBuckets(const v1::DurationHistogram& before, v1::DurationHistogram* durations) {
  bool good =
      SumFits(*durations) && (durations->buckets_size() == kDurationBuckets ||
                              (durations->buckets_size() == 0 && before.buckets_size() == 0));
  for (int i = 0; good && i < before.buckets_size(); ++i)
    good = durations->buckets(i) >= before.buckets(i);
  if (good) return 0;
  *durations = before;
  return 1;
}

int RepairFields(const Message& before, Message* message) {
  int repaired = 0;
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    if (field->is_repeated()) continue;
    const Reflection* reflection = message->GetReflection();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
      repaired += RepairDouble(before, field, message);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64) {
      repaired += RepairCount(before, field, message);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      // A message that was set before stays set, so that its counters remain.
      if (!reflection->HasField(*message, field) && !reflection->HasField(before, field)) continue;
      repaired += RepairFields(reflection->GetMessage(before, field),
                               reflection->MutableMessage(message, field));
    }
  }
  if (auto* durations = dynamic_cast<v1::DurationHistogram*>(message))
    repaired += RepairBuckets(static_cast<const v1::DurationHistogram&>(before), durations);
  return repaired;
}

int RepairGpus(v1::WorkerTelemetry* telemetry) {
  std::set<uint32_t> seen;
  auto* gpus = telemetry->mutable_gpus();
  const int sent = gpus->size();
  const auto end = std::remove_if(gpus->begin(), gpus->end(), [&seen](const v1::GpuTelemetry& gpu) {
    return seen.size() == kMaxGpus || !seen.insert(gpu.index()).second;
  });
  gpus->erase(end, gpus->end());
  int repaired = sent - gpus->size();
  for (v1::GpuTelemetry& gpu : *gpus)
    repaired += RepairFields(v1::GpuTelemetry::default_instance(), &gpu);
  return repaired;
}

bool IsVersion(const std::string& version) {
  return version.size() <= kMaxVersionBytes && std::ranges::all_of(version, [](char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '+' || c == '-';
         });
}

}  // namespace

int RepairTelemetry(const v1::WorkerTelemetry& before, v1::WorkerTelemetry* telemetry) {
  telemetry->DiscardUnknownFields();
  int repaired = RepairFields(before, telemetry) + RepairGpus(telemetry);
  if (!IsVersion(telemetry->version())) {
    telemetry->set_version(before.version());
    ++repaired;
  }
  return repaired;
}

void AddDuration(absl::Duration duration, v1::DurationHistogram* histogram) {
  const double seconds = absl::ToDoubleSeconds(duration);
  if (histogram->buckets_size() == 0) histogram->mutable_buckets()->Resize(kDurationBuckets, 0);
  const auto bucket = std::ranges::lower_bound(kDurationBounds, seconds) - kDurationBounds.begin();
  histogram->set_buckets(static_cast<int>(bucket),
                         histogram->buckets(static_cast<int>(bucket)) + 1);
  histogram->set_sum_seconds(histogram->sum_seconds() + seconds);
}

}  // namespace distro
