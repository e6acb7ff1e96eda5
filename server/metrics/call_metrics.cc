#include "server/metrics/call_metrics.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "distro/v1/admin.pb.h"
#include "distro/v1/aggregator.pb.h"
#include "google/protobuf/descriptor.h"

namespace distro::server {
namespace {

using google::protobuf::MethodDescriptor;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// By gRPC's numbers.
constexpr const char* kCodeNames[] = {
    "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated"};

const char* TypeOf(const MethodDescriptor& method) {
  if (method.client_streaming()) return method.server_streaming() ? "bidi_stream" : "client_stream";
  return method.server_streaming() ? "server_stream" : "unary";
}

ClientMetric CounterSample(std::vector<ClientMetric::Label> labels, uint64_t value) {
  ClientMetric sample;
  sample.label = std::move(labels);
  sample.counter.value = static_cast<double>(value);
  return sample;
}

}  // namespace

CallMetrics::CallMetrics() {
  // The linker drops a generated file that is not referenced, and this one has only a service.
  if (descriptor_table_distro_2fv1_2faggregator_2eproto.filename == nullptr) std::abort();
  AddService("distro.v1.AggregatorService");
  AddService("distro.v1.AdminService");
  AddService("distro.v1.LinkService");
}

void CallMetrics::AddService(const std::string& service) {
  const auto* descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
  if (descriptor == nullptr) std::abort();
  for (int i = 0; i < descriptor->method_count(); ++i) {
    const MethodDescriptor& method = *descriptor->method(i);
    paths_[absl::StrCat("/", service, "/", method.name())] = static_cast<int>(methods_.size());
    Method& added = methods_.emplace_back();
    added.service = service;
    added.name = method.name();
    added.type = TypeOf(method);
  }
}

int CallMetrics::MethodOf(absl::string_view path) const {
  const auto it = paths_.find(path);
  return it == paths_.end() ? -1 : it->second;
}

void CallMetrics::OnCallStarted(int method) { ++methods_[method].started; }
void CallMetrics::OnMessageReceived(int method) { ++methods_[method].received; }
void CallMetrics::OnMessageSent(int method) { ++methods_[method].sent; }

void CallMetrics::OnCallHandled(int method, int code, absl::Duration time) {
  Method& handled = methods_[method];
  ++handled.handled[std::clamp(code, 0, kCodes - 1)];
  const double seconds = absl::ToDoubleSeconds(time);
  ++handled.times[std::ranges::lower_bound(kBounds, seconds) - kBounds.begin()];
  handled.nanoseconds += absl::ToInt64Nanoseconds(time);
}

CallMetrics::Labels CallMetrics::LabelsOf(const Method& method) {
  return {
      {"grpc_type", method.type}, {"grpc_service", method.service}, {"grpc_method", method.name}};
}

MetricFamily CallMetrics::Counts(const char* name, const char* help,
                                 std::atomic<uint64_t> Method::*count) const {
  MetricFamily family{name, help, MetricType::Counter, {}};
  for (const Method& method : methods_)
    family.metric.push_back(CounterSample(LabelsOf(method), method.*count));
  return family;
}

// Exports OK from the start and other codes once they occurred: all codes would dominate the page.
MetricFamily CallMetrics::Handled() const {
  MetricFamily family{
      "grpc_server_handled_total", "Calls that ended, by their code.", MetricType::Counter, {}};
  for (const Method& method : methods_) {
    for (int code = 0; code < kCodes; ++code) {
      const uint64_t count = method.handled[code];
      if (code != 0 && count == 0) continue;
      Labels labels = LabelsOf(method);
      labels.push_back({"grpc_code", kCodeNames[code]});
      family.metric.push_back(CounterSample(std::move(labels), count));
    }
  }
  return family;
}

MetricFamily CallMetrics::Times() const {
  MetricFamily family{"grpc_server_handling_seconds",
                      "Time from the start of a call to its end.",
                      MetricType::Histogram,
                      {}};
  for (const Method& method : methods_) {
    ClientMetric sample;
    sample.label = LabelsOf(method);
    sample.histogram.sample_sum = 1e-9 * static_cast<double>(method.nanoseconds);
    uint64_t count = 0;
    for (size_t i = 0; i < method.times.size(); ++i) {
      count += method.times[i];
      sample.histogram.bucket.push_back(
          {.cumulative_count = count,
           .upper_bound =
               i < kBounds.size() ? kBounds[i] : std::numeric_limits<double>::infinity()});
    }
    sample.histogram.sample_count = count;
    family.metric.push_back(std::move(sample));
  }
  return family;
}

std::vector<MetricFamily> CallMetrics::Collect() const {
  std::vector<MetricFamily> families;
  families.push_back(Counts("grpc_server_started_total", "Calls that began.", &Method::started));
  families.push_back(
      Counts("grpc_server_msg_received_total", "Messages that calls received.", &Method::received));
  families.push_back(
      Counts("grpc_server_msg_sent_total", "Messages that calls sent.", &Method::sent));
  families.push_back(Handled());
  families.push_back(Times());
  return families;
}

}  // namespace distro::server
