// `distroctl workers`: lists the workers that an aggregator knows, once or repeatedly.
#pragma once

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/process/command_line.h"
#include "distro/v1/admin.grpc.pb.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

// An answer of the aggregator, with its time.
struct WorkersSample {
  v1::GetRunResponse run;
  v1::ListWorkersResponse list;
  absl::Time at;  // of the request; only differences matter
};

absl::StatusOr<WorkersSample> AskForWorkers(v1::AdminService::StubInterface* admin, absl::Time now);

// One line for the run, then one per worker. With an earlier sample also the tokens and bytes per
// second since then; a restarted process's counters are taken from 0. Pure; `before` may be
// nullptr.
Report WorkersReport(const WorkersSample& sample, const WorkersSample* before);

Command WorkersCommand(const Console* console);

}  // namespace distro::tools
