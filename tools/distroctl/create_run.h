// `distroctl run create`: uploads a run and its initial model to an aggregator without a run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/process/command_line.h"
#include "distro/v1/admin.grpc.pb.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct CreateRunOptions {
  std::string run;    // path of run.json. Required.
  std::string model;  // checkpoint folder, Hugging Face layout. Required.
};

// Uploads both, resuming an interrupted upload, and returns one line for people. `progress` gets
// occasional lines. InvalidArgument: run.json or the checkpoint. FailedPrecondition, AlreadyExists:
// the aggregator holds another run.
absl::StatusOr<Report> CreateRun(const CreateRunOptions& options,
                                 v1::AdminService::StubInterface* admin,
                                 const std::function<void(absl::string_view)>& progress);

Command RunCreateCommand(const Console* console);

}  // namespace distro::tools
