// Implements the update rule of the deltas method (update_rule.h) by delta_rule.h.
#include <bit>
#include <cstring>
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/string_view.h"
#include "common/base/bitmap.h"
#include "common/base/status_macros.h"
#include "common/method/deltas/payload.h"
#include "common/method/deltas/scale.h"
#include "common/method/deltas/step.h"
#include "worker/rules/deltas/delta_rule.h"
#include "worker/rules/segment_parts.h"
#include "worker/rules/update_rule.h"

namespace distro::worker {
namespace {

// The arrays of a pending update: positions u16 [blocks, K], signs i8 [blocks, K], codes u8
// [blocks].
std::vector<int64_t> BlockBytesOf(int k) {
  return {static_cast<int64_t>(k * sizeof(uint16_t)), k, 1};
}

template <typename T>
void Append(absl::string_view bytes, std::vector<T>* numbers) {
  const size_t before = numbers->size();
  numbers->resize(before + bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(numbers->data() + before, bytes.data(), bytes.size());
}
template <typename T>
absl::Span<const char> Bytes(absl::Span<const T> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

DeltaUpdate UpdateOf(int k, const BlockBytes& segment) {
  DeltaUpdate update{.k = k, .positions = {}, .signs = {}, .codes = {}};
  Append(absl::string_view(segment[0]), &update.positions);
  Append(absl::string_view(segment[1]), &update.signs);
  Append(absl::string_view(segment[2]), &update.codes);
  return update;
}

absl::Status Check(int k, const BlockBytes& segment) {
  const DeltaUpdate update = UpdateOf(k, segment);
  const std::vector<uint8_t> any(update.codes.size(), kScaleCodes - 1);
  return ValidateDeltaUpdate(update, any);
}

std::string Encode(const PayloadIdentity& identity, int k, const BlockBytes& segment) {
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

// An inner optimizer without elements only counts the steps.
DeltaState StateOf(const std::vector<RunSpans>& elements) {
  if (elements.size() == 1) return {.error = elements[0], .first = {}, .second = {}};
  return {.error = elements[0], .first = elements[1], .second = elements[2]};
}

class LocalDeltaRule final : public UpdateRule {
 public:
  LocalDeltaRule(RuleShard shard, const InnerSettings& settings, std::vector<InnerTensor> tensors,
                 std::vector<bool> as_dct, std::vector<RunSpans> elements)
      : shard_(std::move(shard)),
        elements_(std::move(elements)),
        rule_(shard_, settings, std::move(tensors), std::move(as_dct), StateOf(elements_)) {}

  absl::Status TakeGradient(const v1::StepParameters& step, int index, double norm,
                            const RunSpans& gradient, const RunSpans& copy) override {
    const bool steps = elements_.size() > 1;
    const uint32_t rate = step.deltas().inner_rate_bits(index);
    return rule_.Step({.rate = std::bit_cast<float>(rate), .clip_norm = step.clip_norm()}, norm,
                      steps ? gradient : RunSpans(), steps ? copy : RunSpans());
  }

  absl::StatusOr<bool> IsFinite(const v1::StepParameters& step, const RunSpans& parameters,
                                const RunSpans& copy) override {
    return rule_.IsFinite(step.deltas().error_decay(), parameters, copy);
  }

  absl::Status Compress(const v1::StepParameters& step, const RunSpans& parameters,
                        const RunSpans& copy) override {
    const std::string& caps = step.deltas().caps();
    return rule_.Compress({.beta = step.deltas().error_decay(),
                           .k = static_cast<int>(step.kept_per_block()),
                           .caps = {caps.begin(), caps.end()}},
                          parameters, copy);
  }

  absl::Status Abandon() override { return rule_.Abandon(); }
  absl::Status Forget() override { return rule_.Forget(); }

  absl::Status Feedback(const CommittedRound& round, const DecodedRound& decoded,
                        int member) override {
    const auto* const deltas = std::get_if<std::vector<DeltaResult>>(&decoded);
    if (deltas == nullptr || deltas->size() != shard_.layout->segments())
      return absl::FailedPreconditionError("feedback of a round of deltas that was not applied");
    std::vector<const DeltaResult*> results;
    for (uint32_t i = 0; i < deltas->size(); ++i)
      results.push_back(round.Included(member, SegmentId(i)) ? &(*deltas)[i] : nullptr);
    return rule_.Feedback(results);
  }

  absl::Status Lookahead(float /*eta*/, const RunSpans& /*parameters*/,
                         const RunSpans& /*out*/) override {
    return absl::FailedPreconditionError("deltas have no lookahead copy");
  }

  absl::Span<const RunSpans> elements() const override { return elements_; }

  std::vector<BlockArray> pending() const override {
    const DeltaRecordsView update = *rule_.pending();
    const std::vector<int64_t> bytes = BlockBytesOf(update.k);
    return {{.bytes = Bytes(update.positions), .block_bytes = bytes[0]},
            {.bytes = Bytes(update.signs), .block_bytes = bytes[1]},
            {.bytes = Bytes(update.codes), .block_bytes = bytes[2]}};
  }

  absl::Status RestorePending(const PendingUpdate& pending) override {
    DeltaUpdate update{.k = pending.k, .positions = {}, .signs = {}, .codes = {}};
    const std::vector<int64_t> bytes = BlockBytesOf(pending.k);
    for (const SegmentPart& part : rule_.parts()) {
      Append(BytesOf(part, pending, 0, bytes[0]), &update.positions);
      Append(BytesOf(part, pending, 1, bytes[1]), &update.signs);
      Append(BytesOf(part, pending, 2, bytes[2]), &update.codes);
    }
    return rule_.RestorePending(update);
  }

  uint64_t local_steps() const override { return rule_.inner_steps(); }
  void RestoreLocalSteps(uint64_t steps) override { rule_.RestoreInnerSteps(steps); }
  std::optional<DeltaSums> sums() const override { return rule_.sums(); }

 private:
  const RuleShard shard_;
  // The error buffer; if the rule takes the steps, also the inner optimizer's first and second.
  const std::vector<RunSpans> elements_;
  DeltaRule rule_;
};

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
          .block_bytes = BlockBytesOf,
          .check = Check,
          .encode = Encode,
          .make =
              [settings, tensors = std::move(tensors), by_muon = std::move(by_muon)](
                  RuleShard shard, std::vector<RunSpans> elements) {
                return std::make_unique<LocalDeltaRule>(std::move(shard), settings, tensors,
                                                        by_muon, std::move(elements));
              }};
}

}  // namespace distro::worker
