#include "common/method/deltas/method.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/bitmap.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/method/base/key_checks.h"
#include "common/method/deltas/combine.h"
#include "common/method/deltas/dense_update.h"
#include "common/method/deltas/muon_tensors.h"
#include "common/method/deltas/payload.h"
#include "common/method/deltas/rounds.h"
#include "common/method/deltas/scale.h"
#include "common/method/deltas/step.h"

namespace distro {
namespace {

// A record has room for this many workers when samples come back in pieces of one step.
constexpr uint32_t kDefaultMaxWorkersOfWindow = 256;

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
  return BadField("adam_epsilon", absl::StrCat(config.adam_epsilon(),
                                               " is outside above 0 to 1 (as a 32-bit float)"));
}

absl::Status CheckOuterRate(double rate) {
  DISTRO_RETURN_IF_ERROR(InRange("outer_learning_rate", rate, 0.0, kLargestOuterRate));
  if (rate == 0 || rate >= kLeastOuterRate) return absl::OkStatus();
  return BadField("outer_learning_rate", absl::StrCat(rate, " is neither 0 nor at least 2^-82"));
}

absl::Status CheckWeighting(const v1::RunConfig& config) {
  if (config.weighting() != v1::WEIGHTING_DATA) return absl::OkStatus();
  if (config.data() != v1::DATA_LOCAL)
    return BadField("weighting",
                    "\"data\" has no meaning where all hold the same: set data to \"local\"");
  if (!config.has_round_window()) return absl::OkStatus();
  return BadField("weighting", "is \"steps\" with round_window: remove one of the two keys");
}

// What runs that send every position do not have.
absl::Status CheckDense(const v1::RunConfig& config) {
  if (!IsDense(static_cast<int>(config.kept_per_block()))) return absl::OkStatus();
  if (config.download() == v1::DOWNLOAD_MODE_TOP) {
    return BadField(
        "download",
        "\"top\" is not supported with kept_per_block 4096: remove one of the two keys");
  }
  // Offsets into a result's entries have 32 bits.
  constexpr uint32_t kMostBlocks = UINT32_MAX / kBlockElements;
  if (config.segment_blocks() <= kMostBlocks) return absl::OkStatus();
  return BadField("segment_blocks", absl::StrCat(config.segment_blocks(), " is above ", kMostBlocks,
                                                 ", the most with kept_per_block 4096"));
}

absl::Status CheckDeltaClip(const v1::RunConfig& config) {
  const double clip = config.delta_clip();
  if (!config.has_delta_clip() || (clip > 0 && std::isfinite(clip))) return absl::OkStatus();
  return BadField("delta_clip",
                  absl::StrCat(clip,
                               " is not above 0 and finite: remove the key to send what the "
                               "steps did as it is"));
}

static_assert(kLargestScaleMedian == kScaleCodes);

class DeltasMethod final : public Method {
 public:
  absl::string_view name() const override { return "deltas"; }

  void FillDefaults(v1::RunConfig* config) const override;
  absl::Status CheckKeys(const v1::RunConfig& config) const override;
  std::string Describe(const v1::RunConfig& config) const override {
    const bool muon = config.inner_optimizer() == v1::INNER_OPTIMIZER_MUON;
    return absl::StrCat(name(), ", H = ", config.local_steps(), ", K = ", config.kept_per_block(),
                        ", ", muon ? "muon" : "adamw");
  }

  absl::Status CheckStep(const v1::StepParameters& step, const Layout& layout) const override {
    if (step.eta_bits() != 0 || step.eta_lambda_bits() != 0 || step.beta() != 0)
      return BadField("step", "has eta or beta, which deltas do not");
    return Annotate(CheckDeltaParameters(step.deltas(), layout), "step: deltas");
  }
  std::string DescribeStep(const v1::StepParameters& step) const override {
    const std::vector<float> rates = InnerRates(step.deltas());
    const auto [least, most] = std::ranges::minmax(
        step.deltas().caps(), {}, [](char cap) { return static_cast<uint8_t>(cap); });
    return absl::StrFormat(
        "deltas, %d local steps, the first of rate %g, outer rate %g, error decay %g, clip %g, K "
        "%d, caps %d to %d",
        rates.size(), rates.front(), OuterRate(step.deltas()), step.deltas().error_decay(),
        step.clip_norm(), step.kept_per_block(), static_cast<uint8_t>(least),
        static_cast<uint8_t>(most));
  }
  WeightLimit MemberWeights(const v1::StepParameters& /*step*/) const override {
    // Sums can hold the weights of the largest number of workers that a run may have.
    static_assert(kMaxWorkers * kMaxStepsWeight <= kMaxDeltaWeights);
    return {.sum = kMaxDeltaWeights, .message = "more than 2^19 in all"};
  }
  size_t ScaleMedianCount(const Layout& layout) const override { return layout.tensors().size(); }
  std::vector<double> Caps(const v1::StepParameters& step) const override {
    std::vector<double> caps;
    for (const char cap : step.deltas().caps()) {
      const auto scale = static_cast<double>(ScaleOf(static_cast<uint8_t>(cap)));
      caps.push_back(std::ldexp(scale, -kScaleUnitBits));
    }
    return caps;
  }
  uint64_t MaxResultBytes(uint64_t blocks) const override { return MaxDeltaResultBytes(blocks); }
  uint64_t HeaderBytes(const v1::RunConfig& config, const Layout& layout) const override {
    constexpr uint64_t kTagsAndLengths = 64;  // of the lists below and what is there once
    const uint64_t tensors = layout.tensors().size();
    const uint64_t a_tensor = 1 + 2;  // its cap, and its median as a varint
    return kTagsAndLengths + sizeof(float) * uint64_t{config.local_steps()} + a_tensor * tensors +
           BitmapBytes(tensors);
  }

  bool binds_updates_to_slots() const override { return true; }

  absl::StatusOr<std::shared_ptr<const RoundMethod>> MakeRounds(
      const v1::RunConfig& config, std::shared_ptr<const Layout> layout,
      absl::string_view model_config_json) const override {
    DISTRO_ASSIGN_OR_RETURN(std::vector<bool> as_dct,
                            MuonTensorsOf(config, *layout, model_config_json));
    return MakeDeltaRounds(config, std::move(layout), std::move(as_dct));
  }
};

void DeltasMethod::FillDefaults(v1::RunConfig* filled) const {
  v1::RunConfig& config = *filled;
  if (!config.has_kept_per_block()) config.set_kept_per_block(128);
  if (!config.has_overlap()) config.set_overlap(0);
  if (!config.has_max_workers()) {
    config.set_max_workers(config.has_round_window() ? kDefaultMaxWorkersOfWindow
                                                     : kDefaultMaxWorkers);
  }
  if (!config.has_local_steps()) config.set_local_steps(5);
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

absl::Status DeltasMethod::CheckKeys(const v1::RunConfig& config) const {
  DISTRO_RETURN_IF_ERROR(RefuseSet(config, {"beta"}, "method \"deltas\", which has error_decay"));
  DISTRO_RETURN_IF_ERROR(InRange<uint32_t>("local_steps", config.local_steps(), 1, kMaxLocalSteps));
  DISTRO_RETURN_IF_ERROR(CheckInnerOptimizer(config));
  DISTRO_RETURN_IF_ERROR(CheckDecay("error_decay", config.error_decay()));
  DISTRO_RETURN_IF_ERROR(CheckOuterRate(config.outer_learning_rate()));
  DISTRO_RETURN_IF_ERROR(CheckWeighting(config));
  DISTRO_RETURN_IF_ERROR(CheckDense(config));
  DISTRO_RETURN_IF_ERROR(CheckDeltaClip(config));
  if (config.divisor() == v1::DIVISOR_ALL) {
    DISTRO_RETURN_IF_ERROR(RefuseSet(config, {"least_senders"}, "divisor \"all\""));
  } else {
    DISTRO_RETURN_IF_ERROR(InRange("least_senders", config.least_senders(), 0.0, 1.0));
  }
  if (config.overlap() == 0) return absl::OkStatus();
  return BadField("overlap",
                  "deltas have none: a result that comes a step late costs more than the "
                  "time it saves: remove the key, or give method \"signs\"");
}

}  // namespace

const Method& Deltas() {
  static const DeltasMethod method;
  return method;
}

}  // namespace distro
