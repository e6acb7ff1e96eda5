// distroctl: prepares runs and looks at them.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/channel.h"
#include "tools/distroctl/certs.h"
#include "tools/distroctl/create_run.h"
#include "tools/distroctl/flags.h"
#include "tools/distroctl/init_model.h"
#include "tools/distroctl/log_ls.h"
#include "tools/distroctl/log_show.h"
#include "tools/distroctl/log_verify.h"
#include "tools/distroctl/operate.h"
#include "tools/distroctl/replay_log.h"
#include "tools/distroctl/show_run.h"
#include "tools/distroctl/token.h"

namespace distro::tools {
namespace {

enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2, kRefused = 3, kDamaged = 4 };

ExitCode ExitCodeFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
      return kUsage;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
      return kRefused;
    case absl::StatusCode::kDataLoss:
      return kDamaged;
    default:
      return kFailed;
  }
}

void PrintProgress(absl::string_view line) { std::cerr << line << "\n"; }

// `name` is that of a worker, where the command has one.
absl::StatusOr<std::string> RunRemote(const std::string& command, const std::string& name,
                                      const std::string& url) {
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel,
                          OpenChannel(ChannelOptionsFromFlags(url)));
  const std::unique_ptr<v1::AdminService::Stub> admin = v1::AdminService::NewStub(channel);
  if (command == "run show") return ShowRun(admin.get());
  if (command == "workers") return ShowWorkers(admin.get());
  if (command == "pause") return PauseRun(admin.get(), ReasonFromFlags());
  if (command == "resume") return ResumeRun(admin.get());
  if (command == "evict") return EvictWorker(admin.get(), name, ReasonFromFlags());
  if (command == "admit") return AdmitWorker(admin.get(), name);
  return CreateRun(CreateRunOptionsFromFlags(), admin.get(), PrintProgress);
}

// Commands on a data folder of this machine: log ls, log verify, log show [ROUND], log replay.
absl::StatusOr<std::string> RunLog(const std::vector<std::string>& arguments) {
  const std::string& command = arguments[1];
  if (arguments.size() == 2) {
    if (command == "ls") return ListLog(LogLsOptionsFromFlags());
    if (command == "verify") return VerifyLog(LogVerifyOptionsFromFlags(), PrintProgress);
    if (command == "show") return ShowRound(LogShowOptionsFromFlags());
    if (command == "replay") return ReplayLog(ReplayLogOptionsFromFlags(), PrintProgress);
  }
  LogShowOptions options = LogShowOptionsFromFlags();
  uint64_t round;
  if (arguments.size() == 3 && command == "show" && absl::SimpleAtoi(arguments[2], &round)) {
    options.round = round;
    return ShowRound(options);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", absl::StrJoin(arguments, " "),
                   "': wants log ls, log verify, log show [ROUND] or log replay"));
}

absl::StatusOr<std::string> Dispatch(std::vector<std::string> arguments) {
  if (arguments == std::vector<std::string>{"init-model"})
    return InitModel(InitModelOptionsFromFlags());
  if (arguments == std::vector<std::string>{"certs"})
    return MakeCerts(CertsOptionsFromFlags(), absl::Now());
  if (arguments.size() == 3 && arguments[0] == "token") {
    if (arguments[1] == "new") return MakeToken(arguments[2], RoleFromFlags());
    if (arguments[1] == "revoke") return RevokeTokens(arguments[2], TokensFileFromFlags());
  }
  if (arguments.size() >= 2 && arguments[0] == "log") return RunLog(arguments);
  if (arguments.empty())
    return absl::InvalidArgumentError("no command; --help lists what there is");
  const std::string words = absl::StrJoin(arguments, " ");
  if (arguments[0] == "evict" || arguments[0] == "admit") {
    if (arguments.size() == 3) return RunRemote(arguments[0], arguments[1], arguments[2]);
    return absl::InvalidArgumentError(arguments[0] +
                                      ": wants the worker's NAME and the aggregator's HOST:PORT");
  }
  const std::string url = arguments.back();
  arguments.pop_back();
  const std::string command = absl::StrJoin(arguments, " ");
  for (const char* known : {"run create", "run show", "workers", "pause", "resume"}) {
    if (command == known) return RunRemote(command, "", url);
    if (words == known)
      return absl::InvalidArgumentError(words + ": the aggregator's HOST:PORT is missing");
  }
  return absl::InvalidArgumentError("unknown command '" + words + "'; --help lists what there is");
}

int Main(const std::vector<std::string>& arguments) {
  const absl::StatusOr<std::string> text = Dispatch(arguments);
  if (text.ok()) {
    std::cout << *text << "\n";
  } else {
    std::cerr << "distroctl: " << text.status().message() << "\n";
  }
  return ExitCodeFor(text.status());
}

}  // namespace
}  // namespace distro::tools

int main(int argc, char** argv) {
  return distro::tools::Main(distro::tools::ParseCommandLine(argc, argv));
}
