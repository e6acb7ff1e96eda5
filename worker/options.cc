#include "worker/options.h"

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/thread_count.h"
#include "common/base/version.h"
#include "common/client/follow/mirrors.h"
#include "common/client/options/invite.h"

namespace distro::worker {

namespace {

absl::Status ValidateNode(const NodeOptions& node) {
  DISTRO_RETURN_IF_ERROR(CheckThreads("--ranks", node.ranks, /*least=*/0));
  if (node.rank_timeout < absl::Seconds(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rank_timeout: ", absl::FormatDuration(node.rank_timeout), " is below 1s"));
  }
  return Validate(node.fsdp, node.device);
}

}  // namespace

absl::Status WorkerOptions::TakeInvite(absl::Time now) {
  DISTRO_ASSIGN_OR_RETURN(const std::optional<Invite> invite,
                          TakeWorkersInvite(&channel, name, now));
  if (!invite.has_value()) return absl::OkStatus();
  name = invite->name;
  run = invite->run;
  data_fingerprint = invite->data_fingerprint;
  return absl::OkStatus();
}

absl::Status WorkerOptions::Validate() const {
  if (channel.aggregator.empty())
    return absl::InvalidArgumentError("--aggregator: is required, for example 127.0.0.1:7700");
  if (data.empty())
    return absl::InvalidArgumentError("--data: is required, a file of text or tokens");
  DISTRO_RETURN_IF_ERROR(ValidateCredential(channel.insecure, channel.tls));
  DISTRO_RETURN_IF_ERROR(ValidateConnectTimeout(connect_timeout));
  DISTRO_RETURN_IF_ERROR(Annotate(ValidateMirrors(mirrors), "--mirrors"));
  if (!channel.insecure && name.empty() && state_dir.empty()) {
    return absl::InvalidArgumentError(
        "--name: is required with TLS, the name that the certificate or the token was made for");
  }
  if (!name.empty()) DISTRO_RETURN_IF_ERROR(ValidateName(name, "--name"));
  DISTRO_RETURN_IF_ERROR(CheckThreads("--threads", threads));
  if (micro_batch_samples < 0 && micro_batch_samples != kAutoMicroBatch) {
    return absl::InvalidArgumentError(
        absl::StrCat("--micro_batch_samples: ", micro_batch_samples, " is below 0"));
  }
  if (hold_back < absl::ZeroDuration() || hold_back > absl::Hours(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--hold_back: ", absl::FormatDuration(hold_back), " is outside 0 to 1h"));
  }
  if (stateless && !state_dir.empty())
    return absl::InvalidArgumentError("--stateless: keeps nothing: leave --state_dir out");
  DISTRO_RETURN_IF_ERROR(ValidateNode(node));
  DISTRO_RETURN_IF_ERROR(sample.Validate());
  if (checkpoint_interval_rounds > 0 && checkpoint_dir.empty()) {
    return absl::InvalidArgumentError("--checkpoint_interval_rounds: needs --checkpoint_dir");
  }
  if (keep < 0) return absl::InvalidArgumentError(absl::StrCat("--keep: ", keep, " is below 0"));
  return absl::OkStatus();
}

void WorkerOptions::WriteTo(Log* log) const {
  log->Info("starting", {{"version", Version()},
                         {"aggregator", channel.aggregator},
                         {"insecure", channel.insecure},
                         {"connect_timeout", absl::FormatDuration(connect_timeout)},
                         {"data", data},
                         {"public_data", public_data},
                         {"stateless", stateless},
                         {"updates", updates},
                         {"hold_back", absl::FormatDuration(hold_back)},
                         {"threads", threads},
                         {"micro_batch_samples", micro_batch_samples},
                         {"device", Name(node.device)},
                         {"ranks", node.ranks},
                         {"sharding", Name(node.fsdp.sharding)},
                         {"param_dtype", Name(ParamDtype())},
                         {"reduce_dtype", Name(node.fsdp.reduce_dtype)},
                         {"activation_checkpointing", node.fsdp.checkpoint_every},
                         {"prefetch_units", node.fsdp.prefetch_units},
                         {"reduce_every_micro_batch", node.fsdp.reduce_every_micro_batch},
                         {"cpu_offload", node.fsdp.cpu_offload},
                         {"memory_limit_bytes", node.memory_limit_bytes},
                         {"checkpoint_dir", checkpoint_dir},
                         {"checkpoint_interval_rounds", checkpoint_interval_rounds},
                         {"keep", keep},
                         {"state_dir", state_dir},
                         {"state_interval_rounds", state_interval_rounds},
                         {"sample_prompt", sample.prompt},
                         {"sample_interval_rounds", sample.interval_rounds},
                         {"sample_tokens", sample.tokens},
                         {"tokenizer_command", sample.tokenizer_command},
                         {"summary", summary},
                         {"http", http}});
}

}  // namespace distro::worker
