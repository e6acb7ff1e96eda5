#include "worker/rules/shard_rule.h"

#include <utility>

#include "common/base/status_macros.h"

namespace distro::worker {

ShardRule::ShardRule(RuleShard shard, const UpdateRuleKind& kind, std::vector<RunSpans> elements)
    : shard_(std::move(shard)), rule_(kind.make(shard_, std::move(elements))), row_sums_(shard_) {}

absl::Status ShardRule::SumOfSteps(absl::Span<double> row_sums) {
  return row_sums_.OfDifference(arrays_.copy, arrays_.parameters, arrays_.gradient, row_sums);
}

absl::Status ShardRule::ScaleSteps(float scale) {
  for (size_t i = 0; i < arrays_.copy.size(); ++i) {
    DISTRO_RETURN_IF_ERROR(shard_.inner->ScaleFrom(scale, arrays_.parameters[i], arrays_.copy[i]));
  }
  return shard_.device->Finish();
}

absl::Status ShardRule::Restore(const ElementBytes& elements,
                                const std::optional<PendingUpdate>& pending, uint64_t local_steps) {
  rule_->RestoreLocalSteps(local_steps);
  for (size_t array = 0; array < elements.size(); ++array) {
    for (size_t i = 0; i < runs().size(); ++i) {
      const ShardRun& run = runs()[i];
      const absl::string_view bytes = BytesOf(run, elements[array][run.tensor]);
      shard_.device->CopyIn(bytes.data(), bytes.size(), rule_->elements()[array][i].data());
    }
  }
  DISTRO_RETURN_IF_ERROR(shard_.device->Finish());
  return pending.has_value() ? rule_->RestorePending(*pending) : absl::OkStatus();
}

absl::StatusOr<RunSpans> ShardRule::OnHost(const RunSpans& spans,
                                           std::vector<std::vector<float>>* memory) const {
  Device* const device = shard_.device;
  if (!device->has_own_memory()) return spans;
  RunSpans copies;
  for (const absl::Span<float> span : spans) {
    std::vector<float>& copy = memory->emplace_back(span.size());
    device->CopyOut(span.data(), span.size() * sizeof(float), copy.data());
    copies.push_back(absl::MakeSpan(copy));
  }
  DISTRO_RETURN_IF_ERROR(device->Finish());
  return copies;
}

}  // namespace distro::worker
