#include "worker/python/thread_shards.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "worker/plan/shard_plan.h"

namespace distro::worker {
namespace {

// Divides all tensors, as one unit, among this number of threads.
ShardPlan PlanOf(const Layout& layout, int threads) {
  std::vector<int> tensors(layout.tensors().size());
  std::iota(tensors.begin(), tensors.end(), 0);
  return *ShardPlan::Create(layout, {tensors}, std::clamp(threads, 1, 1024));
}

std::vector<RunSpans> ElementsOf(const std::vector<ShardRun>& runs,
                                 std::vector<TensorBuffer>* arrays) {
  std::vector<RunSpans> elements;
  for (TensorBuffer& array : *arrays) elements.push_back(RunsOf(runs, SpansOf(&array)));
  return elements;
}

}  // namespace

ThreadShards::Part::Part(const Layout& layout, const UpdateRuleKind& kind,
                         std::vector<ShardRun> runs, std::vector<TensorBuffer>* elements,
                         TensorBuffer* parameters)
    : rule(host.Of({.layout = &layout, .runs = runs}), kind, ElementsOf(runs, elements)) {
  rule.arrays().parameters = RunsOf(runs, SpansOf(parameters));
}

ThreadShards::ThreadShards(const Layout* layout, const UpdateRuleKind& kind, int threads,
                           TensorBuffer* parameters) {
  for (int i = 0; i < kind.element_arrays; ++i) elements_.emplace_back(*layout);
  const ShardPlan plan = PlanOf(*layout, threads);
  for (int i = 0; i < plan.ranks(); ++i) {
    parts_.push_back(
        std::make_unique<Part>(*layout, kind, plan.shard(i).runs, &elements_, parameters));
  }
}

std::vector<ShardRule*> ThreadShards::shards() const {
  std::vector<ShardRule*> shards;
  for (const auto& part : parts_) shards.push_back(&part->rule);
  return shards;
}

void ThreadShards::SetGradient(const RunSpans& tensors) {
  for (const auto& part : parts_) part->rule.arrays().gradient = RunsOf(part->rule.runs(), tensors);
}

void ThreadShards::SetCopy(const RunSpans& tensors) {
  for (const auto& part : parts_) part->rule.arrays().copy = RunsOf(part->rule.runs(), tensors);
}

absl::Status ThreadShards::ForEach(
    absl::FunctionRef<absl::Status(ShardRule& shard, int number)> work) const {
  const auto threads = static_cast<int>(parts_.size());
  std::vector<absl::Status> statuses(threads);
  RunParallel(threads, threads,
              [&](int, int64_t i) { statuses[i] = work(parts_[i]->rule, static_cast<int>(i)); });
  for (absl::Status& status : statuses) DISTRO_RETURN_IF_ERROR(std::move(status));
  return absl::OkStatus();
}

}  // namespace distro::worker
