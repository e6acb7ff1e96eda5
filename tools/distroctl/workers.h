// `distroctl workers`: the workers that an aggregator knows, once or again and again.
#pragma once

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/process/command_line.h"
#include "distro/v1/admin.grpc.pb.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

// What the aggregator said at one time.
struct WorkersSample {
  v1::GetRunResponse run;
  v1::ListWorkersResponse list;
  absl::Time at;  // when it was asked; only differences count
};

absl::StatusOr<WorkersSample> AskForWorkers(v1::AdminService::StubInterface* admin, absl::Time now);

// A line for the run, then one a worker. With a sample of before, also what each moved a second
// since then: counters of a process that was started again meanwhile count from 0. Pure; `before`
// may be null.
Report WorkersReport(const WorkersSample& sample, const WorkersSample* before);

Command WorkersCommand(const Console* console);

}  // namespace distro::tools
