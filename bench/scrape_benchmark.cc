// Measures the cost of a scrape of /metrics/workers at the aggregator: collecting and writing the
// page, by number of workers.
#include <string>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "common/net/telemetry/metric_families.h"
#include "common/net/wire/worker_readings.h"
#include "server/metrics/part_metrics.h"
#include "server/session/worker_reports.h"

namespace distro::server {
namespace {

v1::HeartbeatRequest Heartbeat(int worker) {
  v1::HeartbeatRequest request;
  request.mutable_worker()->set_name(absl::StrCat("worker-", worker));
  request.mutable_worker()->set_incarnation(1);
  request.set_sequence(1);
  v1::WorkerTelemetry* telemetry = request.mutable_telemetry();
  telemetry->set_version("1.2.3");
  telemetry->set_loss(2.345678 + worker);
  telemetry->set_gradient_norm(0.123456);
  telemetry->set_tokens(123456789);
  telemetry->mutable_phases()->set_wait(1234.56789);
  for (int i = 0; i < 100; ++i)
    AddDuration(absl::Milliseconds(37 * i),
                telemetry->mutable_transfer()->mutable_upload_durations());
  return request;
}

void ScrapeWorkers(benchmark::State& state) {
  WorkerReports reports;
  for (int i = 0; i < state.range(0); ++i)
    reports.Take(Heartbeat(i), absl::Now(), absl::ZeroDuration());
  size_t bytes = 0;
  for (auto _ : state) bytes = MetricsText(CollectWorkers(reports, absl::ZeroDuration())).size();
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(ScrapeWorkers)->Arg(1)->Arg(40)->Arg(200)->Arg(1024)->Unit(benchmark::kMillisecond);

void TakeHeartbeat(benchmark::State& state) {
  WorkerReports reports;
  v1::HeartbeatRequest request = Heartbeat(0);
  for (auto _ : state) {
    request.set_sequence(request.sequence() + 1);
    reports.Take(request, absl::Now(), absl::ZeroDuration());
  }
}
BENCHMARK(TakeHeartbeat);

}  // namespace
}  // namespace distro::server

BENCHMARK_MAIN();
