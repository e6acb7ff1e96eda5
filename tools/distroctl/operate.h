// `distroctl run show`, and the operator's decisions about a run: `run pause`, `run resume`, `run
// extend`, `evict` and `admit`. The aggregator stores a decision before it answers, so a restart
// does not undo it. Each may be repeated.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/process/command_line.h"
#include "distro/v1/admin.grpc.pb.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

// The open round ends, and no other opens until ResumeRun. InvalidArgument: a reason above 200
// bytes.
absl::StatusOr<Report> PauseRun(v1::AdminService::StubInterface* admin, absl::string_view reason);

absl::StatusOr<Report> ResumeRun(v1::AdminService::StubInterface* admin);

// Sets the run's length to `rounds` rounds, even if it is done. FailedPrecondition: fewer than it
// has, or it is done and min_learning_rate is 0. InvalidArgument: 0, or more than a run may have.
absl::StatusOr<Report> ExtendRun(v1::AdminService::StubInterface* admin, uint64_t rounds);

// Refuses everything from a worker of this name, known or not, until AdmitWorker. InvalidArgument:
// a bad name or reason.
absl::StatusOr<Report> EvictWorker(v1::AdminService::StubInterface* admin, const std::string& name,
                                   absl::string_view reason);

// Ends a quarantine. NotFound: the name is not in quarantine.
absl::StatusOr<Report> AdmitWorker(v1::AdminService::StubInterface* admin, const std::string& name);

Command RunPauseCommand(const Console* console);
Command RunResumeCommand(const Console* console);
Command RunExtendCommand(const Console* console);
Command EvictCommand(const Console* console);
Command AdmitCommand(const Console* console);

// Shows the run, or what the aggregator waits for if there is none yet.
absl::StatusOr<Report> ShowRun(v1::AdminService::StubInterface* admin);

Command RunShowCommand(const Console* console);

}  // namespace distro::tools
