#include "common/run/method_config.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/run/run_checks.h"

namespace distro {
namespace {

constexpr uint32_t kMaxKept = 4096;            // positions of a block
constexpr uint32_t kMaxVotes = 32767;          // sum of |V| over a block; limits the workers too
constexpr uint32_t kDefaultMaxWorkers = 1024;  // unless K of the signs requires fewer
// A record has room for this many workers when samples come back in pieces of one step.
constexpr uint32_t kDefaultMaxWorkersOfWindow = 256;

// Refuses the given keys if they are set, because they have no meaning with `method`.
absl::Status RefuseSet(const v1::RunConfig& config, std::initializer_list<absl::string_view> keys,
                       absl::string_view method) {
  for (const absl::string_view key : keys) {
    const auto* const field = v1::RunConfig::descriptor()->FindFieldByName(std::string(key));
    if (!config.GetReflection()->HasField(config, field)) continue;
    return RefuseKey(key, absl::StrCat("has no meaning with ", method, ": remove it"));
  }
  return absl::OkStatus();
}

absl::Status CheckSigns(const v1::RunConfig& config) {
  DISTRO_RETURN_IF_ERROR(
      RefuseSet(config,
                {"local_steps", "inner_optimizer", "muon_momentum", "adam_beta1", "adam_beta2",
                 "adam_epsilon", "error_decay", "outer_learning_rate", "divisor", "least_senders",
                 "round_window", "weighting", "delta_clip"},
                "method \"signs\""));
  DISTRO_RETURN_IF_ERROR(CheckDecay("beta", config.beta()));
  const uint32_t most = kMaxVotes / config.kept_per_block();
  if (config.max_workers() > most) {
    return RefuseKey("max_workers",
                     absl::StrCat("kept_per_block ", config.kept_per_block(), " * max_workers ",
                                  config.max_workers(), " exceeds ", kMaxVotes,
                                  " votes a block: set max_workers to at most ", most,
                                  " or lower kept_per_block"));
  }
  return InRange<uint32_t>("overlap", config.overlap(), 0, 1);
}

absl::Status CheckInnerOptimizer(const v1::RunConfig& config) {
  if (config.inner_optimizer() == v1::INNER_OPTIMIZER_ADAMW) {
    DISTRO_RETURN_IF_ERROR(RefuseSet(config, {"muon_momentum"}, "inner_optimizer \"adamw\""));
  } else {
    DISTRO_RETURN_IF_ERROR(CheckDecay("muon_momentum", config.muon_momentum()));
  }
  DISTRO_RETURN_IF_ERROR(CheckDecay("adam_beta1", config.adam_beta1()));
  DISTRO_RETURN_IF_ERROR(CheckDecay("adam_beta2", config.adam_beta2()));
  const auto epsilon = static_cast<float>(config.adam_epsilon());
  if (epsilon > 0 && epsilon <= 1) return absl::OkStatus();
  return RefuseKey("adam_epsilon", absl::StrCat(config.adam_epsilon(),
                                                " is outside above 0 to 1 (as a 32-bit float)"));
}

absl::Status CheckOuterRate(double rate) {
  DISTRO_RETURN_IF_ERROR(InRange("outer_learning_rate", rate, 0.0, kLargestOuterRate));
  if (rate == 0 || rate >= kLeastOuterRate) return absl::OkStatus();
  return RefuseKey("outer_learning_rate", absl::StrCat(rate, " is neither 0 nor at least 2^-82"));
}

absl::Status CheckWeighting(const v1::RunConfig& config) {
  if (config.weighting() != v1::WEIGHTING_DATA) return absl::OkStatus();
  if (config.data() != v1::DATA_LOCAL)
    return RefuseKey("weighting",
                     "\"data\" has no meaning where all hold the same: set data to \"local\"");
  if (!config.has_round_window()) return absl::OkStatus();
  return RefuseKey("weighting", "is \"steps\" with round_window: remove one of the two keys");
}

absl::Status CheckDeltaClip(const v1::RunConfig& config) {
  const double clip = config.delta_clip();
  if (!config.has_delta_clip() || (clip > 0 && std::isfinite(clip))) return absl::OkStatus();
  return RefuseKey("delta_clip",
                   absl::StrCat(clip,
                                " is not above 0 and finite: remove the key to send what the "
                                "steps did as it is"));
}

absl::Status CheckDeltas(const v1::RunConfig& config) {
  DISTRO_RETURN_IF_ERROR(RefuseSet(config, {"beta"}, "method \"deltas\", which has error_decay"));
  DISTRO_RETURN_IF_ERROR(InRange<uint32_t>("local_steps", config.local_steps(), 1, kMaxLocalSteps));
  DISTRO_RETURN_IF_ERROR(CheckInnerOptimizer(config));
  DISTRO_RETURN_IF_ERROR(CheckDecay("error_decay", config.error_decay()));
  DISTRO_RETURN_IF_ERROR(CheckOuterRate(config.outer_learning_rate()));
  DISTRO_RETURN_IF_ERROR(CheckWeighting(config));
  DISTRO_RETURN_IF_ERROR(CheckDeltaClip(config));
  if (config.divisor() == v1::DIVISOR_ALL) {
    DISTRO_RETURN_IF_ERROR(RefuseSet(config, {"least_senders"}, "divisor \"all\""));
  } else {
    DISTRO_RETURN_IF_ERROR(InRange("least_senders", config.least_senders(), 0.0, 1.0));
  }
  if (config.overlap() == 0) return absl::OkStatus();
  return RefuseKey("overlap",
                   "deltas have none: a result that comes a step late costs more than the "
                   "time it saves: remove the key, or give method \"signs\"");
}

void FillDeltaDefaults(v1::RunConfig& config) {
  if (!config.has_local_steps()) config.set_local_steps(1);
  if (config.inner_optimizer() == v1::INNER_OPTIMIZER_UNSPECIFIED)
    config.set_inner_optimizer(v1::INNER_OPTIMIZER_MUON);
  if (!config.has_muon_momentum() && config.inner_optimizer() == v1::INNER_OPTIMIZER_MUON)
    config.set_muon_momentum(config.local_steps() > 1 ? 0.8 : 0.9);
  if (!config.has_adam_beta1()) config.set_adam_beta1(0.9);
  if (!config.has_adam_beta2()) config.set_adam_beta2(0.95);
  if (!config.has_adam_epsilon()) config.set_adam_epsilon(1e-8);
  if (!config.has_error_decay()) config.set_error_decay(0.8);
  if (!config.has_outer_learning_rate()) config.set_outer_learning_rate(1);
  if (config.divisor() == v1::DIVISOR_UNSPECIFIED) config.set_divisor(v1::DIVISOR_SENDERS);
  if (!config.has_least_senders() && config.divisor() == v1::DIVISOR_SENDERS)
    config.set_least_senders(0);
  if (config.weighting() == v1::WEIGHTING_UNSPECIFIED) config.set_weighting(v1::WEIGHTING_STEPS);
}

}  // namespace

void FillMethodDefaults(v1::RunConfig* config) {
  const bool deltas = config->method() == v1::METHOD_DELTAS;
  if (!config->has_kept_per_block()) config->set_kept_per_block(deltas ? 32 : 4);
  if (!config->has_overlap()) config->set_overlap(deltas ? 0 : 1);
  if (!config->has_max_workers()) {
    const uint32_t kept = std::max<uint32_t>(1, config->kept_per_block());
    const uint32_t of_deltas =
        config->has_round_window() ? kDefaultMaxWorkersOfWindow : kDefaultMaxWorkers;
    config->set_max_workers(deltas ? of_deltas : std::min(kDefaultMaxWorkers, kMaxVotes / kept));
  }
  if (deltas) {
    FillDeltaDefaults(*config);
  } else if (!config->has_beta()) {
    config->set_beta(0.999);
  }
}

absl::Status CheckMethod(const v1::RunConfig& config) {
  DISTRO_RETURN_IF_ERROR(InRange<uint32_t>("kept_per_block", config.kept_per_block(), 1, kMaxKept));
  DISTRO_RETURN_IF_ERROR(InRange<uint32_t>("max_workers", config.max_workers(), 1, kMaxVotes));
  return config.method() == v1::METHOD_DELTAS ? CheckDeltas(config) : CheckSigns(config);
}

}  // namespace distro
