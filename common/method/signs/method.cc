#include "common/method/signs/method.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/method/base/key_checks.h"
#include "common/method/signs/payload.h"
#include "common/method/signs/rounds.h"
#include "common/method/signs/step.h"
#include "common/method/signs/votes.h"

namespace distro {
namespace {

static_assert(kMaxWorkers == kMaxVotesPerBlock);

class SignsMethod final : public Method {
 public:
  absl::string_view name() const override { return "signs"; }

  void FillDefaults(v1::RunConfig* config) const override;
  absl::Status CheckKeys(const v1::RunConfig& config) const override;
  std::string Describe(const v1::RunConfig& config) const override {
    return absl::StrCat(name(), ", K = ", config.kept_per_block());
  }

  absl::Status CheckStep(const v1::StepParameters& step, const Layout& /*layout*/) const override {
    return CheckSignStep(step);
  }
  std::string DescribeStep(const v1::StepParameters& step) const override {
    return absl::StrFormat("eta %g, eta*lambda %g, beta %g, clip %g, K %d",
                           std::bit_cast<float>(step.eta_bits()),
                           std::bit_cast<float>(step.eta_lambda_bits()), step.beta(),
                           step.clip_norm(), step.kept_per_block());
  }
  // Each of its K entries is a vote of the member's weight.
  WeightLimit MemberWeights(const v1::StepParameters& step) const override {
    return {.sum = kMaxVotesPerBlock,
            .a_weight = step.kept_per_block(),
            .message = "more than 32767 votes a block in all"};
  }
  size_t ScaleMedianCount(const Layout& /*layout*/) const override { return 0; }
  std::vector<double> Caps(const v1::StepParameters& /*step*/) const override { return {}; }
  uint64_t MaxResultBytes(uint64_t blocks) const override { return MaxVotesBytes(blocks); }
  uint64_t HeaderBytes(const v1::RunConfig& /*config*/, const Layout& /*layout*/) const override {
    return 0;
  }

  bool binds_updates_to_slots() const override { return false; }

  absl::StatusOr<std::shared_ptr<const RoundMethod>> MakeRounds(
      const v1::RunConfig& config, std::shared_ptr<const Layout> layout,
      absl::string_view /*model_config_json*/) const override {
    return MakeSignRounds(config, std::move(layout));
  }
};

void SignsMethod::FillDefaults(v1::RunConfig* config) const {
  if (!config->has_kept_per_block()) config->set_kept_per_block(4);
  if (!config->has_overlap()) config->set_overlap(1);
  if (!config->has_max_workers()) {
    const uint32_t kept = std::max<uint32_t>(1, config->kept_per_block());
    config->set_max_workers(std::min<uint32_t>(kDefaultMaxWorkers, kMaxVotesPerBlock / kept));
  }
  if (!config->has_beta()) config->set_beta(0.999);
}

absl::Status SignsMethod::CheckKeys(const v1::RunConfig& config) const {
  DISTRO_RETURN_IF_ERROR(
      RefuseSet(config,
                {"local_steps", "inner_optimizer", "muon_momentum", "adam_beta1", "adam_beta2",
                 "adam_epsilon", "error_decay", "outer_learning_rate", "divisor", "least_senders",
                 "round_window", "weighting", "delta_clip"},
                "method \"signs\""));
  DISTRO_RETURN_IF_ERROR(CheckDecay("beta", config.beta()));
  const uint32_t most = kMaxVotesPerBlock / config.kept_per_block();
  if (config.max_workers() > most) {
    return BadField("max_workers",
                    absl::StrCat("kept_per_block ", config.kept_per_block(), " * max_workers ",
                                 config.max_workers(), " exceeds ", kMaxVotesPerBlock,
                                 " votes a block: set max_workers to at most ", most,
                                 " or lower kept_per_block"));
  }
  return InRange<uint32_t>("overlap", config.overlap(), 0, 1);
}

}  // namespace

const Method& Signs() {
  static const SignsMethod method;
  return method;
}

}  // namespace distro
