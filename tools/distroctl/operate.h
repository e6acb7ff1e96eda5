// `distroctl run show`, and what an operator decides about a run: `run pause`, `run resume`,
// `run extend`, `evict` and `admit`. Each decision is durable on the aggregator before it answers,
// so that a restart changes nothing, and may be repeated.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/process/command_line.h"
#include "distro/v1/admin.grpc.pb.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

// The open round ends, no other opens until ResumeRun. InvalidArgument: a reason above 200 bytes.
absl::StatusOr<Report> PauseRun(v1::AdminService::StubInterface* admin, absl::string_view reason);

absl::StatusOr<Report> ResumeRun(v1::AdminService::StubInterface* admin);

// Gives the run `rounds` rounds, also once it is done. FailedPrecondition: fewer than it has, or it
// would learn nothing more. InvalidArgument: 0, or more than a run may have.
absl::StatusOr<Report> ExtendRun(v1::AdminService::StubInterface* admin, uint64_t rounds);

// Nothing is accepted from a worker of this name, known or not, until AdmitWorker. InvalidArgument:
// a bad name or reason.
absl::StatusOr<Report> EvictWorker(v1::AdminService::StubInterface* admin, const std::string& name,
                                   absl::string_view reason);

// NotFound: the name is not in quarantine.
absl::StatusOr<Report> AdmitWorker(v1::AdminService::StubInterface* admin, const std::string& name);

Command RunPauseCommand(const Console* console);
Command RunResumeCommand(const Console* console);
Command RunExtendCommand(const Console* console);
Command EvictCommand(const Console* console);
Command AdmitCommand(const Console* console);

// Also when there is no run yet: then it says what the aggregator waits for.
absl::StatusOr<Report> ShowRun(v1::AdminService::StubInterface* admin);

Command RunShowCommand(const Console* console);

}  // namespace distro::tools
