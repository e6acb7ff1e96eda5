#include "worker/python/threaded_rule.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "kernels/cpu/deltas_compress.h"
#include "worker/plan/shard_plan.h"

namespace distro::worker {
namespace {

// Divides all tensors, as one unit, among this number of threads.
ShardPlan PlanOf(const Layout& layout, int threads) {
  std::vector<int> tensors(layout.tensors().size());
  std::iota(tensors.begin(), tensors.end(), 0);
  return *ShardPlan::Create(layout, {tensors}, std::clamp(threads, 1, 1024));
}

}  // namespace

RunSpans SpansOf(TensorBuffer* buffer) {
  RunSpans spans;
  for (int i = 0; i < buffer->tensors(); ++i) spans.push_back(buffer->tensor(i));
  return spans;
}

ThreadedRule::Part::Part(int index, const Layout& layout, std::vector<ShardRun> runs)
    : number(index),
      shard(host.Of({.layout = &layout, .runs = std::move(runs)})),
      row_sums(shard) {}

RunSpans ThreadedRule::Part::Of(const RunSpans& tensors) const {
  RunSpans spans;
  for (const ShardRun& run : shard.runs)
    spans.push_back(tensors[run.tensor].subspan(run.first_element, run.matrix.elements));
  return spans;
}

ThreadedRule::ThreadedRule(const Layout* layout, const UpdateRuleKind* kind, int threads)
    : layout_(layout), kind_(kind) {
  for (int i = 0; i < kind->element_arrays; ++i) elements_.emplace_back(*layout);
  const ShardPlan plan = PlanOf(*layout, threads);
  for (int i = 0; i < plan.ranks(); ++i) {
    auto part = std::make_unique<Part>(i, *layout, plan.shard(i).runs);
    std::vector<RunSpans> elements;
    for (TensorBuffer& buffer : elements_) elements.push_back(part->Of(SpansOf(&buffer)));
    part->rule = kind->make(part->shard, std::move(elements));
    parts_.push_back(std::move(part));
  }
}

std::vector<RankRule> ThreadedRule::ranks() const {
  std::vector<RankRule> ranks;
  for (const auto& part : parts_)
    ranks.push_back({.rule = part->rule.get(), .runs = part->shard.runs});
  return ranks;
}

absl::Status ThreadedRule::ForEach(const std::function<absl::Status(Part& part)>& work) {
  std::vector<absl::Status> statuses(parts_.size());
  RunParallel(threads(), threads(), [&](int, int64_t i) { statuses[i] = work(*parts_[i]); });
  for (absl::Status& status : statuses) DISTRO_RETURN_IF_ERROR(std::move(status));
  return absl::OkStatus();
}

absl::Status ThreadedRule::TakeGradient(const v1::StepParameters& step, int index, double norm,
                                        const RunSpans& gradient) {
  return ForEach([&](Part& part) {
    return part.rule->TakeGradient(step, index, norm,
                                   gradient.empty() ? RunSpans() : part.Of(gradient), {});
  });
}

absl::StatusOr<bool> ThreadedRule::IsFinite(const v1::StepParameters& step,
                                            const RunSpans& parameters, const RunSpans& copy) {
  std::atomic<bool> finite = true;
  DISTRO_RETURN_IF_ERROR(ForEach([&](Part& part) -> absl::Status {
    DISTRO_ASSIGN_OR_RETURN(const bool of_part,
                            part.rule->IsFinite(step, part.Of(parameters), part.Of(copy)));
    if (!of_part) finite = false;
    return absl::OkStatus();
  }));
  return finite.load();
}

absl::Status ThreadedRule::Compress(const v1::StepParameters& step, const RunSpans& parameters,
                                    const RunSpans& copy) {
  return ForEach(
      [&](Part& part) { return part.rule->Compress(step, part.Of(parameters), part.Of(copy)); });
}

absl::Status ThreadedRule::Abandon() {
  return ForEach([](Part& part) { return part.rule->Abandon(); });
}

absl::Status ThreadedRule::Forget() {
  return ForEach([](Part& part) { return part.rule->Forget(); });
}

absl::Status ThreadedRule::Feedback(const CommittedRound& round, const DecodedRound& decoded,
                                    int member) {
  return ForEach([&](Part& part) { return part.rule->Feedback(round, decoded, member); });
}

absl::Status ThreadedRule::Lookahead(float eta, const RunSpans& parameters, const RunSpans& out) {
  return ForEach(
      [&](Part& part) { return part.rule->Lookahead(eta, part.Of(parameters), part.Of(out)); });
}

std::optional<DeltaSums> ThreadedRule::sums() const {
  std::optional<DeltaSums> sums = parts_[0]->rule->sums();
  if (!sums.has_value()) return sums;
  for (size_t i = 1; i < parts_.size(); ++i) sums->Add(*parts_[i]->rule->sums());
  return sums;
}

absl::StatusOr<double> ThreadedRule::NormOfSteps(const RunSpans& parameters, const RunSpans& copy) {
  std::vector<double> squares(parts_.size());
  DISTRO_RETURN_IF_ERROR(ForEach([&](Part& part) -> absl::Status {
    const RunSpans begin = part.Of(parameters), end = part.Of(copy);
    double sum = 0;
    for (size_t i = 0; i < begin.size(); ++i) sum += SquaredDistance(end[i], begin[i]);
    squares[part.number] = sum;
    return absl::OkStatus();
  }));
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

absl::Status ThreadedRule::ScaleSteps(float scale, const RunSpans& parameters,
                                      const RunSpans& copy) {
  return ForEach([&](Part& part) -> absl::Status {
    const RunSpans begin = part.Of(parameters), end = part.Of(copy);
    for (size_t i = 0; i < begin.size(); ++i)
      DISTRO_RETURN_IF_ERROR(part.shard.inner->ScaleFrom(scale, begin[i], end[i]));
    return absl::OkStatus();
  });
}

absl::StatusOr<double> ThreadedRule::MomentumNorm() {
  std::vector<double> rows(BlockRows(*layout_));
  DISTRO_RETURN_IF_ERROR(ForEach([&](Part& part) {
    return part.row_sums.Of(part.rule->elements()[0], absl::MakeSpan(rows));
  }));
  return NormOf(*layout_, rows);
}

absl::Status ThreadedRule::Copy(const RunSpans& from, const RunSpans& to) {
  return ForEach([&](Part& part) {
    const RunSpans begin = part.Of(from), end = part.Of(to);
    for (size_t i = 0; i < begin.size(); ++i) std::ranges::copy(begin[i], end[i].begin());
    return absl::OkStatus();
  });
}

absl::Status ThreadedRule::Restore(const StateReader::Contents& contents) {
  for (size_t array = 0; array < elements_.size(); ++array) {
    for (int i = 0; i < elements_[array].tensors(); ++i) {
      const absl::string_view bytes = contents.elements[array][i];
      std::memcpy(elements_[array].tensor(i).data(), bytes.data(), bytes.size());
    }
  }
  return ForEach([&](Part& part) {
    part.rule->RestoreLocalSteps(contents.local_steps);
    return contents.pending.has_value() ? part.rule->RestorePending(*contents.pending)
                                        : absl::OkStatus();
  });
}

}  // namespace distro::worker
