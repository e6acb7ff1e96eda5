#include "common/net/telemetry/worker_families.h"

#include <cstdlib>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/net/wire/worker_readings.h"
#include "google/protobuf/descriptor.h"

namespace distro {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

// Maps a field of WorkerTelemetry to a series. Rows with the same name are adjacent. A number with
// presence is a gauge, one without is a counter. A message is a histogram, or has one series per
// field, whose name is the value of `label`.
struct Row {
  const char* name;
  const char* path;
  const char* help;
  const char* label = "";
  const char* value = "";  // of `label`, where the path is a number
  const char* more_label = "";
  const char* more_value = "";
};

constexpr char kExcluded[] = "Updates of which a segment or more was not included.";
constexpr char kSent[] = "Payload bytes sent.";
constexpr char kReceived[] = "Payload bytes received.";
constexpr char kTransfer[] =
    "Time with payload bytes in flight, in seconds; it overlaps with all phases.";
constexpr char kCapacity[] = "Payload rate of the fastest recent transfer.";
constexpr char kRetries[] = "Retried calls to the aggregator.";

constexpr Row kRows[] = {
    {"loss", "loss", "Training loss of the last own step, in nats a token."},
    {"eval_loss", "evaluation_loss", "Held-out loss of the last evaluation, in nats a token."},
    {"own_eval_loss", "own_evaluation_loss",
     "Loss of the last evaluation on held-out tokens of the worker's own, in nats a token."},
    {"grad_norm", "gradient_norm", "Norm of the last own gradient, before clipping."},
    {"learning_rate", "learning_rate", "Learning rate of the last own step."},
    {"momentum_norm", "momentum_norm", "Norm of the momentum at the last evaluation."},
    {"tokens_total", "tokens", "Tokens trained on."},
    {"nonfinite_steps_total", "nonfinite_steps", "Steps whose loss or gradient was not finite."},
    {"resyncs_total", "resyncs", "How often the parameters were loaded from a snapshot again."},
    {"dropped_values_total", "dropped_values",
     "Values dropped because they were not finite, or would have lowered a counter."},
    {"phase_seconds_total", "phases", "Time of the training thread by phase, in seconds.", "phase"},
    {"updates_total", "updates.sent", "Updates passed on for upload."},
    {"updates_excluded_total", "updates.excluded_late", kExcluded, "reason", "late"},
    {"updates_excluded_total", "updates.excluded_probation", kExcluded, "reason", "probation"},
    {"updates_excluded_total", "updates.excluded_absent", kExcluded, "reason", "absent"},
    {"updates_excluded_total", "updates.excluded_other_sender", kExcluded, "reason",
     "other_sender"},
    {"inner_steps_total", "deltas.inner_steps", "Steps of the inner optimizer."},
    {"delta_norm", "deltas.delta_norm",
     "Norm of the total change by the inner steps of the last update."},
    {"delta_energy_ratio", "deltas.energy_kept",
     "Share of the error buffer's sum of squares that the last update sent, 0 to 1."},
    {"delta_capped_ratio", "deltas.capped",
     "Share of the last update's blocks whose scale is the cap of their tensor, 0 to 1."},
    {"delta_cancelled_ratio", "deltas.cancelled",
     "Share of the last included update's positions that the result does not have, 0 to 1."},
    {"gradient_bytes_total", "updates.gradient_bytes",
     "Bytes that sending float32 gradients would have uploaded."},
    {"sent_bytes_total", "sent_bytes", kSent, "kind", "update"},
    {"sent_bytes_total", "transfer.sent_control_bytes", kSent, "kind", "control"},
    {"received_bytes_total", "received_bytes", kReceived, "kind", "result"},
    {"received_bytes_total", "transfer.received_snapshot_bytes", kReceived, "kind", "snapshot"},
    {"received_bytes_total", "transfer.received_control_bytes", kReceived, "kind", "control"},
    {"mirror_bytes_total", "transfer.mirror_bytes",
     "Bytes of received results and snapshots that came from mirrors."},
    {"mirror_failures_total", "transfer.mirror_failures", "Requests to mirrors that failed."},
    {"transfer_seconds_total", "transfer.upload_seconds", kTransfer, "direction", "upload"},
    {"transfer_seconds_total", "transfer.download_seconds", kTransfer, "direction", "download"},
    {"upload_duration_seconds", "transfer.upload_durations",
     "From the first write of an update to its last acknowledgement."},
    {"download_duration_seconds", "transfer.download_durations",
     "Time with a round's result in flight."},
    {"link_capacity_bytes_per_second", "transfer.upload_capacity", kCapacity, "direction",
     "upload"},
    {"link_capacity_bytes_per_second", "transfer.download_capacity", kCapacity, "direction",
     "download"},
    {"rtt_seconds", "transfer.rtt_seconds", "Time from the last heartbeat to its answer."},
    {"reconnects_total", "transfer.reconnects", "Reopened subscriptions to the aggregator."},
    {"retries_total", "transfer.join_retries", kRetries, "code", "", "rpc", "join"},
    {"retries_total", "transfer.heartbeat_retries", kRetries, "code", "", "rpc", "heartbeat"},
    {"retries_total", "transfer.upload_retries", kRetries, "code", "", "rpc", "upload"},
    {"retries_total", "transfer.snapshot_retries", kRetries, "code", "", "rpc", "snapshot"},
    {"model_flops_total", "compute.model_flops", "Floating-point operations of the model."},
    {"peak_flops_per_second", "compute.peak_flops_per_second",
     "Floating-point operations a second of matrix products, measured at the start."},
    {"memory_bytes", "compute.memory", "Memory in use, by kind of content, in bytes.", "kind"},
    {"collective_seconds_total", "compute.collectives",
     "Time in collective operations of the node's ranks, in seconds.", "op"},
    {"gpu_memory_used_bytes", "gpus.memory_used_bytes", "Memory of the GPU in use, in bytes."},
    {"gpu_memory_total_bytes", "gpus.memory_total_bytes", "Memory of the GPU, in bytes."},
    {"gpu_utilization_ratio", "gpus.utilization",
     "Share of time in which the GPU computed, 0 to 1."},
};

using Path = std::vector<const FieldDescriptor*>;

Path Resolve(const Row& row) {
  Path path;
  const Descriptor* in = v1::WorkerTelemetry::descriptor();
  for (const absl::string_view name : absl::StrSplit(row.path, '.')) {
    path.push_back(in->FindFieldByName(std::string(name)));
    if (path.back() == nullptr) std::abort();  // the table names a field that does not exist
    in = path.back()->message_type();
  }
  return path;
}

// The message that contains the path's last field; empty if a message of the path is not set.
const Message* Follow(const Message& from, const Path& path, size_t steps) {
  const Message* message = &from;
  for (size_t i = 0; i < steps; ++i)
    message = &message->GetReflection()->GetMessage(*message, path[i]);
  return message;
}

bool IsSet(const Message& message, const FieldDescriptor* field) {
  return !field->has_presence() || message.GetReflection()->HasField(message, field);
}

double NumberOf(const Message& message, const FieldDescriptor* field) {
  const google::protobuf::Reflection* reflection = message.GetReflection();
  return field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE
             ? reflection->GetDouble(message, field)
             : static_cast<double>(reflection->GetUInt64(message, field));
}

MetricType TypeOf(const Path& path) {
  const FieldDescriptor* field = path.back();
  if (field->message_type() == v1::DurationHistogram::descriptor()) return MetricType::Histogram;
  if (field->message_type() != nullptr) field = field->message_type()->field(0);
  return field->has_presence() ? MetricType::Gauge : MetricType::Counter;
}

void AddSample(Labels labels, const Message& message, const FieldDescriptor* field,
               MetricFamily* family) {
  if (!IsSet(message, field)) return;
  ClientMetric sample;
  sample.label = std::move(labels);
  const double value = NumberOf(message, field);
  (family->type == MetricType::Counter ? sample.counter.value : sample.gauge.value) = value;
  family->metric.push_back(std::move(sample));
}

void AddHistogram(Labels labels, const v1::DurationHistogram& durations, MetricFamily* family) {
  ClientMetric sample;
  sample.label = std::move(labels);
  sample.histogram.sample_sum = durations.sum_seconds();
  uint64_t count = 0;
  for (int i = 0; i < kDurationBuckets; ++i) {
    if (i < durations.buckets_size()) count += durations.buckets(i);
    const double bound = i + 1 < kDurationBuckets ? kDurationBounds[static_cast<size_t>(i)]
                                                  : std::numeric_limits<double>::infinity();
    sample.histogram.bucket.push_back({.cumulative_count = count, .upper_bound = bound});
  }
  sample.histogram.sample_count = count;
  family->metric.push_back(std::move(sample));
}

Labels LabelsOf(const WorkerReadings& worker) {
  Labels labels;
  if (!worker.worker.empty()) labels.push_back({"worker", worker.worker});
  return labels;
}

void AddGpus(const WorkerReadings& worker, const Path& path, MetricFamily* family) {
  for (const v1::GpuTelemetry& gpu : worker.telemetry->gpus()) {
    Labels labels = LabelsOf(worker);
    labels.push_back({"gpu", absl::StrCat(gpu.index())});
    AddSample(std::move(labels), gpu, path.back(), family);
  }
}

// A message that is not a histogram: its fields.
void AddFields(const Row& row, const Labels& labels, const Message& message, MetricFamily* family) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    Labels named = labels;
    named.push_back({row.label, field->name()});
    AddSample(std::move(named), message, field, family);
  }
}

void AddRow(const Row& row, const Path& path, const WorkerReadings& worker, MetricFamily* family) {
  if (path.front()->is_repeated()) return AddGpus(worker, path, family);
  const Message& holder = *Follow(*worker.telemetry, path, path.size() - 1);
  Labels labels = LabelsOf(worker);
  if (*row.more_label != '\0') labels.push_back({row.more_label, row.more_value});
  if (path.back()->message_type() == nullptr) {
    if (*row.label != '\0') labels.push_back({row.label, row.value});
    return AddSample(std::move(labels), holder, path.back(), family);
  }
  const Message& message = holder.GetReflection()->GetMessage(holder, path.back());
  if (const auto* durations = dynamic_cast<const v1::DurationHistogram*>(&message))
    return AddHistogram(std::move(labels), *durations, family);
  // A node without collective operations has no series for them, rather than zeros.
  const bool expected = row.label != absl::string_view("op") || IsSet(holder, path.back());
  if (expected) AddFields(row, labels, message, family);
}

MetricFamily NewFamily(const char* name, const char* help, MetricType type) {
  return {absl::StrCat("distro_worker_", name), help, type, {}};
}

void AddGauge(const char* name, const char* help, absl::Span<const WorkerReadings> workers,
              void (*fill)(const WorkerReadings&, MetricFamily*),
              std::vector<MetricFamily>* families) {
  families->push_back(NewFamily(name, help, MetricType::Gauge));
  for (const WorkerReadings& worker : workers) fill(worker, &families->back());
}

void Put(Labels labels, double value, MetricFamily* family) {
  ClientMetric sample;
  sample.label = std::move(labels);
  sample.gauge.value = value;
  family->metric.push_back(std::move(sample));
}

// Adds the series that do not come from the telemetry's numbers.
void AddOthers(absl::Span<const WorkerReadings> workers, std::vector<MetricFamily>* families) {
  AddGauge(
      "build_info", "1, with the version of this build.", workers,
      [](const WorkerReadings& worker, MetricFamily* family) {
        if (worker.telemetry->version().empty()) return;
        Labels labels = LabelsOf(worker);
        labels.push_back({"version", worker.telemetry->version()});
        Put(std::move(labels), 1, family);
      },
      families);
  AddGauge(
      "last_report_timestamp_seconds",
      "When the aggregator last accepted a heartbeat, in seconds since 1970.", workers,
      [](const WorkerReadings& worker, MetricFamily* family) {
        if (worker.last_report_seconds) Put(LabelsOf(worker), *worker.last_report_seconds, family);
      },
      families);
  AddGauge(
      "failed_writes", "Attempts in a row to write to the worker's own disk that failed.", workers,
      [](const WorkerReadings& worker, MetricFamily* family) {
        if (!worker.failed_writes) return;
        for (const auto& [kind, count] : {std::pair{"checkpoint", worker.failed_writes->checkpoint},
                                          std::pair{"state", worker.failed_writes->state}}) {
          Labels labels = LabelsOf(worker);
          labels.push_back({"kind", kind});
          Put(std::move(labels), static_cast<double>(count), family);
        }
      },
      families);
  AddGauge(
      "round", "The first round that is not yet in the parameters.", workers,
      [](const WorkerReadings& worker, MetricFamily* family) {
        Put(LabelsOf(worker), static_cast<double>(worker.next_round), family);
      },
      families);
}

}  // namespace

std::vector<MetricFamily> WorkerFamilies(absl::Span<const WorkerReadings> workers) {
  std::vector<MetricFamily> families;
  AddOthers(workers, &families);
  for (const Row& row : kRows) {
    const Path path = Resolve(row);
    if (families.back().name != absl::StrCat("distro_worker_", row.name))
      families.push_back(NewFamily(row.name, row.help, TypeOf(path)));
    for (const WorkerReadings& worker : workers) AddRow(row, path, worker, &families.back());
  }
  std::erase_if(families, [](const MetricFamily& family) { return family.metric.empty(); });
  return families;
}

}  // namespace distro
