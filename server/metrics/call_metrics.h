// grpc_server_*: calls, messages, codes and times by method, named as in go-grpc-prometheus
// (docs/metrics.md, "Calls"). The methods are those of our services; nothing that a peer names
// becomes a label. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "prometheus/metric_family.h"
#include "server/call/observers.h"

namespace distro::server {

class CallMetrics final : public CallObserver {
 public:
  CallMetrics();

  int MethodOf(absl::string_view path) const override;
  void OnCallStarted(int method) override;
  void OnMessageReceived(int method) override;
  void OnMessageSent(int method) override;
  void OnCallHandled(int method, int code, absl::Duration time) override;

  std::vector<prometheus::MetricFamily> Collect() const;

 private:
  static constexpr int kCodes = 17;
  // As go-grpc's, in seconds.
  static constexpr std::array<double, 11> kBounds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                     0.5,   1,    2.5,   5,    10};
  struct Method {
    std::string service;
    std::string name;
    const char* type;
    std::atomic<uint64_t> started{0};
    std::atomic<uint64_t> received{0};
    std::atomic<uint64_t> sent{0};
    std::array<std::atomic<uint64_t>, kCodes> handled{};
    std::array<std::atomic<uint64_t>, kBounds.size() + 1> times{};  // per bucket, not cumulative
    std::atomic<int64_t> nanoseconds{0};
  };
  using Labels = std::vector<prometheus::ClientMetric::Label>;

  static Labels LabelsOf(const Method& method);
  void AddService(const std::string& service);
  prometheus::MetricFamily Counts(const char* name, const char* help,
                                  std::atomic<uint64_t> Method::*count) const;
  prometheus::MetricFamily Handled() const;
  prometheus::MetricFamily Times() const;

  // Constant after construction, but for the counts.
  std::deque<Method> methods_;
  std::map<std::string, int, std::less<>> paths_;
};

}  // namespace distro::server
