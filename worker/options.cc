#include "worker/options.h"

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"

namespace distro::worker {

absl::Status ValidateThreads(int threads) {
  if (threads >= 1 && threads <= 1024) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--threads: ", threads, " is outside 1..1024"));
}

namespace {

absl::Status ValidateNode(const NodeOptions& node) {
  const FsdpOptions& fsdp = node.fsdp;
  const auto refuse = [](absl::string_view what) { return absl::InvalidArgumentError(what); };
  if (node.ranks < 1 || node.ranks > kMaxRanks)
    return refuse(absl::StrCat("--ranks: ", node.ranks, " is outside 1..", kMaxRanks));
  if (fsdp.checkpoint_every < 0)
    return refuse(
        absl::StrCat("--activation_checkpointing: ", fsdp.checkpoint_every, " is below 0"));
  if (fsdp.prefetch_units < 0)
    return refuse(absl::StrCat("--prefetch_units: ", fsdp.prefetch_units, " is below 0"));
  if (!fsdp.reduce_every_micro_batch && ShardsGradients(fsdp.sharding)) {
    return refuse(absl::StrCat("--reduce_every_micro_batch: false is not possible with --sharding ",
                               Name(fsdp.sharding), ", which keeps no whole gradient"));
  }
  if (node.rank_timeout < absl::Seconds(1))
    return refuse(
        absl::StrCat("--rank_timeout: ", absl::FormatDuration(node.rank_timeout), " is below 1s"));
  return absl::OkStatus();
}

}  // namespace

absl::Status WorkerOptions::Validate() const {
  if (aggregator.empty())
    return absl::InvalidArgumentError("--aggregator: is required, for example 127.0.0.1:7700");
  if (data.empty())
    return absl::InvalidArgumentError("--data: is required, a file of text or tokens");
  DISTRO_RETURN_IF_ERROR(ValidateClientTls(insecure, tls));
  if (!insecure && name.empty() && state_dir.empty()) {
    return absl::InvalidArgumentError(
        "--name: is required with TLS, the name that the certificate or the token was made for");
  }
  if (!name.empty()) DISTRO_RETURN_IF_ERROR(ValidateName(name, "--name"));
  DISTRO_RETURN_IF_ERROR(ValidateThreads(threads));
  if (micro_batch_samples < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--micro_batch_samples: ", micro_batch_samples, " is below 0"));
  }
  DISTRO_RETURN_IF_ERROR(ValidateNode(node));
  if (checkpoint_interval_rounds > 0 && checkpoint_dir.empty()) {
    return absl::InvalidArgumentError("--checkpoint_interval_rounds: needs --checkpoint_dir");
  }
  return absl::OkStatus();
}

}  // namespace distro::worker
