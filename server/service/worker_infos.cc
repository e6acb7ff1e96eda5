#include "server/service/worker_infos.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "common/net/wire/proto_time.h"

namespace distro::server {
namespace {

// Of one that has not come back: since the aggregator started, which is the least.
absl::Duration SilenceOf(const RunStatus& status, size_t index) {
  const Worker& worker = status.workers[index];
  const absl::Duration since = worker.heard() ? worker.last_seen : status.since[index];
  return std::max(status.now - since, absl::ZeroDuration());
}

v1::WorkerInfo InfoOf(const Worker& worker, absl::Duration silence) {
  v1::WorkerInfo info;
  info.set_name(worker.name);
  info.set_state(worker.state);
  info.set_reason(worker.reason);
  info.set_next_round(worker.next_round);
  info.set_probation_left(worker.probation_left);
  *info.mutable_silence() = ToProto(silence);
  return info;
}

void ClearWhatIsNotListed(v1::WorkerTelemetry* telemetry) {
  telemetry->clear_gpus();
  if (!telemetry->has_transfer()) return;
  v1::TransferTelemetry* const transfer = telemetry->mutable_transfer();
  transfer->clear_upload_durations();
  transfer->clear_download_durations();
  transfer->clear_join_retries();
  transfer->clear_heartbeat_retries();
  transfer->clear_upload_retries();
  transfer->clear_snapshot_retries();
}

// Those in session first.
std::vector<const Worker*> ByNeed(const std::vector<Worker>& workers) {
  std::vector<const Worker*> order;
  for (const Worker& worker : workers) order.push_back(&worker);
  std::stable_partition(order.begin(), order.end(),
                        [](const Worker* worker) { return worker->in_session(); });
  return order;
}

}  // namespace

v1::ListWorkersResponse WorkerInfos(const RunStatus& status,
                                    const std::vector<WorkerReport>& reports) {
  std::map<std::pair<absl::string_view, uint64_t>, const v1::WorkerTelemetry*> readings;
  for (const WorkerReport& report : reports)
    readings[{report.worker, report.incarnation}] = report.telemetry.get();
  v1::ListWorkersResponse response;
  size_t bytes = 0;
  for (const Worker* worker : ByNeed(status.workers)) {
    v1::WorkerInfo info =
        InfoOf(*worker, SilenceOf(status, static_cast<size_t>(worker - status.workers.data())));
    bytes += info.ByteSizeLong() + 2 * sizeof(uint32_t);  // tag and length
    if (bytes > kMaxInfosBytes) {
      response.set_left_out(response.left_out() + 1);
      continue;
    }
    const auto reading = readings.find({worker->name, worker->incarnation});
    if (reading != readings.end()) {
      *info.mutable_telemetry() = *reading->second;
      ClearWhatIsNotListed(info.mutable_telemetry());
    }
    *response.add_workers() = std::move(info);
  }
  std::ranges::sort(*response.mutable_workers(), {}, &v1::WorkerInfo::name);
  return response;
}

}  // namespace distro::server
