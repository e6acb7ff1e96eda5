#include "server/log/run_identity.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/method/methods.h"
#include "common/net/wire/framed_message.h"
#include "common/run/run_config.h"

namespace distro::server {
namespace {

constexpr absl::string_view kMagic = "DSTRORUN";

}  // namespace

std::string EncodeRunFile(const v1::StoredRun& run) { return EncodeFramedMessage(kMagic, run); }

absl::StatusOr<v1::StoredRun> ParseRunFile(absl::string_view bytes) {
  v1::StoredRun run;
  DISTRO_RETURN_IF_ERROR(ParseFramedMessage(bytes, kMagic, &run));
  // Runs created by a version without this choice.
  if (run.config().method() == v1::METHOD_UNSPECIFIED)
    run.mutable_config()->set_method(kFirstMethod);
  DISTRO_RETURN_IF_ERROR(CheckKeysAreKnown(run.config()));
  const auto config = CompleteRunConfig(run.config());
  if (!config.ok()) {
    return absl::DataLossError(absl::StrCat("its configuration: ", config.status().message()));
  }
  *run.mutable_config() = *config;
  if (const absl::Status list = CheckCompanionList(run.companions()); !list.ok())
    return absl::DataLossError(list.message());
  return run;
}

}  // namespace distro::server
