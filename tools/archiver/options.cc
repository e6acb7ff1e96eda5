#include "tools/archiver/options.h"

#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/thread_count.h"
#include "common/client/follow/mirrors.h"
#include "common/client/options/invite.h"

namespace distro::tools {

absl::Status ArchiverOptions::TakeInvite(absl::Time now) {
  DISTRO_ASSIGN_OR_RETURN(const std::optional<Invite> invite, distro::TakeInvite(&channel, now));
  return invite.has_value() ? CheckInviteRole(*invite, channel.tls.invite, "archiver")
                            : absl::OkStatus();
}

absl::Status ArchiverOptions::Validate() const {
  if (channel.aggregator.empty())
    return absl::InvalidArgumentError("--aggregator: is required, for example 127.0.0.1:7700");
  if (const auto target = ParseAggregatorUrl(channel.aggregator); !target.ok())
    return Annotate(target.status(), "--aggregator");
  if (absl::Status status = ValidateCredential(channel.insecure, channel.tls); !status.ok())
    return status;
  if (absl::Status status = ValidateConnectTimeout(connect_timeout); !status.ok()) return status;
  if (data_dir.empty())
    return absl::InvalidArgumentError("--data_dir: is required, a folder for its own copy");
  if (publish.keep < 0)
    return absl::InvalidArgumentError(absl::StrCat("--keep: ", publish.keep, " is below 0"));
  if (!publish.command.empty() && publish.dir.empty()) {
    return absl::InvalidArgumentError(
        "--publish_command: has nothing to publish without --publish_dir: give both");
  }
  DISTRO_RETURN_IF_ERROR(CheckThreads("--threads", threads));
  DISTRO_RETURN_IF_ERROR(Annotate(ValidateMirrors(mirrors), "--mirrors"));
  if (const auto address = ParseHostPort(http); !address.ok())
    return Annotate(address.status(), "--http");
  return absl::OkStatus();
}

}  // namespace distro::tools
