#include "tools/distroctl/show_run.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "common/run/run_config.h"

namespace distro::tools {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(20);

// "RUN_STATE_TRAINING" -> "training".
std::string Word(absl::string_view enum_name, absl::string_view prefix) {
  return absl::AsciiStrToLower(absl::StripPrefix(enum_name, prefix));
}

}  // namespace

absl::StatusOr<std::string> ShowRun(v1::AdminService::StubInterface* admin) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kTimeout));
  v1::GetRunResponse run;
  DISTRO_RETURN_IF_ERROR(FromGrpcStatus(admin->GetRun(&context, {}, &run)));
  const std::string state = Word(v1::RunState_Name(run.state()), "RUN_STATE_");
  if (run.run_id().empty()) return absl::StrCat("no run: ", run.reason());
  return absl::StrFormat(
      "run     %s\nstate   %s\nreason  %s\nepoch   %d\nround   %d of %d\nhash    %s\nconfig  %s",
      run.run_id(), state, run.reason(), run.epoch(), run.round(), run.config().rounds(),
      ToHex(run.log_hash()), RunConfigToJson(run.config()));
}

absl::StatusOr<std::string> ShowWorkers(v1::AdminService::StubInterface* admin) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kTimeout));
  v1::ListWorkersResponse list;
  DISTRO_RETURN_IF_ERROR(FromGrpcStatus(admin->ListWorkers(&context, {}, &list)));
  std::string text =
      absl::StrFormat("%-32s %-11s %9s %10s %10s %10s %14s %14s  %s", "NAME", "STATE", "PROBATION",
                      "NEXT ROUND", "SILENCE", "LOSS", "SENT BYTES", "RECEIVED BYTES", "REASON");
  for (const v1::WorkerInfo& worker : list.workers()) {
    absl::StrAppendFormat(
        &text, "\n%-32s %-11s %9s %10d %9.1fs %10.4f %14d %14d  %s", worker.name(),
        Word(v1::MemberState_Name(worker.state()), "MEMBER_STATE_"),
        worker.probation_left() == 0 ? "-" : absl::StrCat(worker.probation_left()),
        worker.next_round(),
        static_cast<double>(worker.silence().seconds()) + 1e-9 * worker.silence().nanos(),
        worker.telemetry().loss(), worker.telemetry().sent_bytes(),
        worker.telemetry().received_bytes(), worker.reason());
  }
  return text;
}

}  // namespace distro::tools
