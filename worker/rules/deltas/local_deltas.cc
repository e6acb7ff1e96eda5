// The kind of rule of the deltas method (update_rule.h), whose rules are DeltaRules.
#include <memory>
#include <string>
#include <utility>

#include "common/base/bitmap.h"
#include "common/method/deltas/payload.h"
#include "common/method/deltas/scale.h"
#include "common/method/deltas/step.h"
#include "worker/rules/deltas/delta_rule.h"
#include "worker/rules/update_rule.h"

namespace distro::worker {
namespace {

DeltaUpdate UpdateOf(int k, const BlockPieces& segment) {
  return {.k = k,
          .positions = NumbersOf<uint16_t>(segment[0]),
          .signs = NumbersOf<int8_t>(segment[1]),
          .codes = NumbersOf<uint8_t>(segment[2])};
}

absl::Status Check(int k, const BlockPieces& segment) {
  const DeltaUpdate update = UpdateOf(k, segment);
  const std::vector<uint8_t> any(update.codes.size(), kScaleCodes - 1);
  return ValidateDeltaUpdate(update, any);
}

std::string Encode(const PayloadIdentity& identity, int k, const BlockPieces& segment) {
  return EncodeDeltaUpdate(identity, UpdateOf(k, segment));
}

InnerSettings SettingsOf(const v1::RunConfig& config) {
  const bool muon = config.inner_optimizer() == v1::INNER_OPTIMIZER_MUON;
  return {.method = muon ? InnerMethod::kMuon : InnerMethod::kAdamW,
          .beta1 = static_cast<float>(config.adam_beta1()),
          .beta2 = static_cast<float>(config.adam_beta2()),
          .epsilon = static_cast<float>(config.adam_epsilon()),
          .mu = static_cast<float>(config.muon_momentum()),
          .weight_decay = static_cast<float>(config.weight_decay())};
}

}  // namespace

UpdateRuleKind LocalDeltas(const v1::RunConfig& config, const Layout* layout,
                           const Architecture& model) {
  const std::vector<InnerTensor> tensors =
      InnerTensors(*layout, UnitTensors(model, layout->manifest()));
  return LocalDeltas(config, layout, MuonTensors(SettingsOf(config), tensors), LocalStepsBy::kRule);
}

UpdateRuleKind LocalDeltas(const v1::RunConfig& config, const Layout* layout,
                           std::vector<bool> by_muon, LocalStepsBy taken_by) {
  InnerSettings settings = SettingsOf(config);
  const bool steps = taken_by == LocalStepsBy::kRule;
  // A rule that takes no steps needs no whole matrices.
  if (!steps) settings.method = InnerMethod::kAdamW;
  std::vector<InnerTensor> tensors;
  for (size_t i = 0; i < by_muon.size(); ++i) {
    const TensorLayout& tensor = layout->tensors()[i];
    tensors.push_back({.matrix = tensor.matrix, .decays = tensor.decays, .inside = by_muon[i]});
  }
  const int arrays = steps ? 3 : 1;
  const std::string as_dct = ToBitmap(by_muon);
  return {.takes_local_steps = true,
          .accepts =
              [as_dct, local_steps = config.local_steps()](const v1::StepParameters& step) {
                const auto rates = static_cast<uint32_t>(step.deltas().inner_rate_bits_size());
                return step.has_deltas() && step.deltas().as_dct() == as_dct &&
                       rates == local_steps;
              },
          .rates = [](const v1::StepParameters& step) { return InnerRates(step.deltas()); },
          .delta_clip = config.delta_clip(),
          .needs_whole = MuonTensors(settings, tensors),
          .as_dct = as_dct,
          .element_arrays = arrays,
          .block_bytes = DeltaBlockBytes,
          .check = Check,
          .encode = Encode,
          .make =
              [settings, tensors = std::move(tensors), by_muon = std::move(by_muon)](
                  RuleShard shard, std::vector<RunSpans> elements) {
                return std::make_unique<DeltaRule>(std::move(shard), settings, tensors, by_muon,
                                                   std::move(elements));
              }};
}

}  // namespace distro::worker
