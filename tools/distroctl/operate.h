// `distroctl pause`, `resume`, `evict` and `admit`: what an operator decides about a run. Each is durable on the aggregator
// before it answers, so that a restart changes nothing, and may be repeated. They return a line for people.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "distro/v1/admin.grpc.pb.h"

namespace distro::tools {

// The open round ends, no other opens until ResumeRun.
absl::StatusOr<std::string> PauseRun(v1::AdminService::StubInterface* admin,
                                     absl::string_view reason);

absl::StatusOr<std::string> ResumeRun(v1::AdminService::StubInterface* admin);

// Nothing is accepted from a worker of this name, known or not, until AdmitWorker. InvalidArgument: a bad name.
absl::StatusOr<std::string> EvictWorker(v1::AdminService::StubInterface* admin,
                                        const std::string& name, absl::string_view reason);

// NotFound: the name is not in quarantine.
absl::StatusOr<std::string> AdmitWorker(v1::AdminService::StubInterface* admin,
                                        const std::string& name);

}  // namespace distro::tools
