// Builds the response of ListWorkers, within the size of a message that clients take. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "distro/v1/admin.pb.h"
#include "server/round/round_manager.h"
#include "server/session/worker_reports.h"

namespace distro::server {

// Maximum bytes of the list without readings; the readings of all WorkerReports need less than
// kMaxReadingsBytes. Together they are below the 2 MiB that clients accept in a message.
inline constexpr size_t kMaxInfosBytes = 1 << 20;
inline constexpr size_t kMaxReadingsBytes = 960 * 1024;

// The workers ascending by name. Workers that do not fit are counted in `left_out`, first those
// without a session. The readings are those of the worker's current process, without those that
// only programs need (WorkerInfo.telemetry).
v1::ListWorkersResponse WorkerInfos(const RunStatus& status,
                                    const std::vector<WorkerReport>& reports);

}  // namespace distro::server
