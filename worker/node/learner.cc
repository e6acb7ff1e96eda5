#include "worker/node/learner.h"

#include <atomic>
#include <utility>

#include "common/base/status_macros.h"

namespace distro::worker {

void Learner::SetShards(const std::vector<ShardRule*>& shards, size_t holders) {
  shards_ = shards;
  holders_ = holders;
  std::vector<RankRule> rules;
  for (const ShardRule* shard : this->holders())
    rules.push_back({.rule = &shard->rule(), .runs = shard->runs()});
  optimizer_.emplace(&layout(), &kind_, std::move(rules));
}

absl::Status Learner::RunOnState(absl::string_view operation, ShardWork work) {
  const absl::Status status = RunOnShards(operation, std::move(work));
  if (!status.ok()) state_is_whole_ = false;
  return status;
}

absl::StatusOr<double> Learner::NormOverShards(absl::string_view operation, SumWork work) {
  // Shards that are copies write the same sums; the first one's are used.
  using Sums = std::vector<std::vector<double>>;
  const bool copies = holders_ < shards_.size();
  auto sums =
      std::make_shared<Sums>(copies ? shards_.size() : 1, std::vector<double>(BlockRows(layout())));
  DISTRO_RETURN_IF_ERROR(
      RunOnShards(operation, [sums, work = std::move(work)](ShardRule& shard, int number) {
        return work(shard, number, absl::MakeSpan((*sums)[number % sums->size()]));
      }));
  return NormOf(layout(), (*sums)[0]);
}

absl::Status Learner::Apply(const CommittedRound& round) {
  return ApplyNext(round, threads_, [this](const v1::StepParameters& step, DecodedRound decoded) {
    decoded_ = std::make_shared<const DecodedRound>(std::move(decoded));
    return Update(step, decoded_);
  });
}

absl::Status Learner::TakeStep(const v1::StepParameters& step, int index, double norm) {
  return RunOnState("take step", [step, index, norm](ShardRule& shard, int) {
    const ShardArrays& arrays = shard.arrays();
    return shard.rule().TakeStep(step, index, norm, arrays.gradient, arrays.copy);
  });
}

absl::StatusOr<bool> Learner::StepsAreFinite(const v1::StepParameters& step) {
  if (!kind_.takes_local_steps) return true;
  const auto finite = std::make_shared<std::atomic<bool>>(true);
  DISTRO_RETURN_IF_ERROR(
      RunOnShards("check steps", [step, finite](ShardRule& shard, int) -> absl::Status {
        const ShardArrays& arrays = shard.arrays();
        DISTRO_ASSIGN_OR_RETURN(const bool of_shard,
                                shard.rule().IsFinite(step, arrays.parameters, arrays.copy));
        if (!of_shard) *finite = false;
        return absl::OkStatus();
      }));
  return finite->load();
}

absl::Status Learner::ClipSteps() {
  if (kind_.delta_clip == 0) return absl::OkStatus();
  DISTRO_ASSIGN_OR_RETURN(
      const double norm,
      NormOverShards("sum of steps", [](ShardRule& shard, int, absl::Span<double> row_sums) {
        return shard.SumOfSteps(row_sums);
      }));
  if (norm <= kind_.delta_clip) return absl::OkStatus();
  const auto scale = static_cast<float>(kind_.delta_clip / norm);
  return RunOnState("scale steps",
                    [scale](ShardRule& shard, int) { return shard.ScaleSteps(scale); });
}

absl::StatusOr<std::vector<SharedBytes>> Learner::Compress(RoundId round,
                                                           const v1::StepParameters& step) {
  ForgetPending();
  DISTRO_ASSIGN_OR_RETURN(const bool finite, StepsAreFinite(step));
  if (!finite) {
    DISTRO_RETURN_IF_ERROR(
        RunOnState("abandon", [](ShardRule& shard, int) { return shard.rule().Abandon(); }));
    return std::vector<SharedBytes>();
  }
  DISTRO_RETURN_IF_ERROR(ClipSteps());
  DISTRO_RETURN_IF_ERROR(RunOnState("compress", [step](ShardRule& shard, int) {
    return shard.rule().Compress(step, shard.arrays().parameters, shard.arrays().copy);
  }));
  optimizer_->SetPending({.round = round, .k = static_cast<int>(step.kept_per_block())});
  return EncodePending();
}

absl::Status Learner::ForgetState() {
  ForgetPending();
  return RunOnState("forget state", [](ShardRule& shard, int) { return shard.rule().Forget(); });
}

absl::StatusOr<double> Learner::MomentumNorm() {
  return NormOverShards("momentum norm", [](ShardRule& shard, int, absl::Span<double> row_sums) {
    return shard.SumOf(shard.rule().elements()[0], row_sums);
  });
}

absl::Status Learner::Feedback(const CommittedRound& round, int member) {
  std::shared_ptr<const DecodedRound> decoded = std::move(decoded_);
  if (decoded == nullptr) decoded = std::make_shared<const DecodedRound>();
  if (!optimizer_->TakePending(round.round())) return absl::OkStatus();
  return RunOnState("feedback", [round, decoded, member](ShardRule& shard, int) {
    return shard.rule().Feedback(round, *decoded, member);
  });
}

std::optional<DeltaReadings> Learner::delta_readings() const {
  if (!state_is_whole_) return std::nullopt;
  std::optional<DeltaSums> sums = holders()[0]->rule().sums();
  if (!sums.has_value()) return std::nullopt;
  for (const ShardRule* shard : holders().subspan(1)) sums->Add(*shard->rule().sums());
  return ReadingsOf(*sums);
}

absl::StatusOr<Learner::Kept> Learner::kept() const {
  if (!state_is_whole_)
    return absl::FailedPreconditionError("a rank failed while it changed the optimizer's state");
  Kept kept = {.elements = {},
               .optimizer = &*optimizer_,
               .copies = {},
               .local_steps = holders()[0]->rule().local_steps()};
  for (int array = 0; array < kind_.element_arrays; ++array) {
    TensorPieces& pieces = kept.elements.emplace_back(layout().tensors().size());
    for (const ShardRule* shard : holders()) {
      DISTRO_ASSIGN_OR_RETURN(const RunSpans spans,
                              shard->OnHost(shard->rule().elements()[array], &kept.copies));
      for (size_t i = 0; i < spans.size(); ++i) pieces[shard->runs()[i].tensor].push_back(spans[i]);
    }
  }
  return kept;
}

absl::Status Learner::Restore(std::shared_ptr<const StateReader::Contents> contents) {
  ForgetPending();
  DISTRO_RETURN_IF_ERROR(RunOnState("restore", [contents](ShardRule& shard, int) {
    return shard.Restore(contents->elements, contents->pending, contents->local_steps);
  }));
  if (contents->pending.has_value())
    optimizer_->SetPending({.round = contents->pending->round, .k = contents->pending->k});
  return absl::OkStatus();
}

}  // namespace distro::worker
