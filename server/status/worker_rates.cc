#include "server/status/worker_rates.h"

namespace distro::server {
namespace {

constexpr absl::Duration kSpacing = absl::Seconds(4);

std::optional<double> Per(double amount, double seconds) {
  if (seconds <= 0) return std::nullopt;
  return amount / seconds;
}

}  // namespace

WorkerRates::Sample WorkerRates::SampleOf(const WorkerReport& report) {
  const v1::WorkerTelemetry& readings = *report.telemetry;
  const v1::PhaseSeconds& phases = readings.phases();
  return {.at = report.received_on,
          .tokens = static_cast<double>(readings.tokens()),
          .sent = static_cast<double>(readings.sent_bytes()),
          .received = static_cast<double>(readings.received_bytes()),
          .upload_seconds = readings.transfer().upload_seconds(),
          .download_seconds = readings.transfer().download_seconds(),
          .upload = phases.upload(),
          .wait = phases.wait(),
          .download = phases.download(),
          .all_phases = phases.idle() + phases.data() + phases.forward_backward() +
                        phases.compress() + phases.upload() + phases.wait() + phases.download() +
                        phases.apply() + phases.evaluate() + phases.checkpoint()};
}

void WorkerRates::Add(const Sample& sample, std::deque<Sample>* samples) {
  if (!samples->empty() && sample.at <= samples->back().at) return;
  if (!samples->empty() && sample.at - samples->back().at > kRateWindow) samples->clear();
  const size_t count = samples->size();
  if (count >= 2 && samples->back().at - (*samples)[count - 2].at < kSpacing) samples->pop_back();
  samples->push_back(sample);
  while (samples->size() > 2 && sample.at - (*samples)[1].at >= kRateWindow) samples->pop_front();
}

void WorkerRates::Take(const std::vector<WorkerReport>& reports) {
  absl::MutexLock lock(&mu_);
  for (const WorkerReport& report : reports) {
    Samples& worker = workers_[report.worker];
    if (worker.incarnation != report.incarnation) worker = {.incarnation = report.incarnation};
    worker.seen = true;
    Add(SampleOf(report), &worker.samples);
  }
  std::erase_if(workers_, [](const auto& entry) { return !entry.second.seen; });
  for (auto& [name, worker] : workers_) worker.seen = false;
}

WorkerRate WorkerRates::Of(const std::string& worker) const {
  absl::MutexLock lock(&mu_);
  const auto it = workers_.find(worker);
  if (it == workers_.end() || it->second.samples.size() < 2) return {};
  const Sample& first = it->second.samples.front();
  const Sample& last = it->second.samples.back();
  const double seconds = absl::ToDoubleSeconds(last.at - first.at);
  const double phases = last.all_phases - first.all_phases;
  return {.tokens_per_second = Per(last.tokens - first.tokens, seconds),
          .up_bytes_per_second = Per(last.sent - first.sent, seconds),
          .down_bytes_per_second = Per(last.received - first.received, seconds),
          .up_goodput = Per(last.sent - first.sent, last.upload_seconds - first.upload_seconds),
          .down_goodput =
              Per(last.received - first.received, last.download_seconds - first.download_seconds),
          .upload_ratio = Per(last.upload - first.upload, phases),
          .wait_ratio = Per(last.wait - first.wait, phases),
          .download_ratio = Per(last.download - first.download, phases)};
}

}  // namespace distro::server
