#include "worker/node/node.h"

#include <unistd.h>

#include <cstring>
#include <deque>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "worker/fsdp/memory_plan.h"
#include "worker/fsdp/rank_threads.h"
#include "worker/fsdp/thread_communicator.h"
#include "worker/model/unit.h"
#include "worker/node/rank.h"

namespace distro::worker {
namespace {

std::vector<std::vector<int>> TensorsOfUnits(const Model& model) {
  std::vector<std::vector<int>> units;
  for (const auto& unit : model.units())
    units.emplace_back(unit->tensors().begin(), unit->tensors().end());
  return units;
}

// The memory of this machine, of which a process cannot have all.
AvailableMemory OfHost() {
  const int64_t bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  return {.bytes = bytes, .reserve_bytes = bytes / 16, .shared = true, .cuda = false};
}

absl::Status CheckPlan(const NodeOptions& options, const Node::Parts& parts,
                       std::vector<std::vector<int>> units) {
  const MemoryRequest request = {.config = parts.model->config(),
                                 .layout = parts.layout,
                                 .units = std::move(units),
                                 .ranks = options.ranks,
                                 .options = options.fsdp,
                                 .sequences = parts.micro_batch_samples,
                                 .positions = parts.sequence_length,
                                 .kept_per_block = parts.kept_per_block,
                                 .lookahead = parts.lookahead};
  DISTRO_ASSIGN_OR_RETURN(const MemoryPlan plan, PlanMemory(request));
  for (int rank = 0; parts.log != nullptr && rank < options.ranks; ++rank)
    parts.log->Info("memory plan", {{"plan", plan.Describe(rank)}});
  AvailableMemory available = OfHost();
  if (options.memory_limit_bytes > 0) {
    available = {.bytes = static_cast<int64_t>(options.memory_limit_bytes),
                 .reserve_bytes = 0,
                 .shared = false,
                 .cuda = false};
  }
  const absl::Status fits = CheckMemory(request, available);
  if (!absl::IsResourceExhausted(fits)) return fits;
  return ErrorWithReason(fits.code(), "does_not_fit", fits.message());
}

// Batches with tokens of their own, and what comes of them: a rank that is stuck may look at them for ever.
struct SharedBatches {
  explicit SharedBatches(absl::Span<const TokenBatch> given)
      : batches(given.begin(), given.end()), losses(given.size()) {
    for (TokenBatch& batch : batches) {
      tokens.emplace_back(batch.tokens.begin(), batch.tokens.end());
      batch.tokens = tokens.back();
    }
  }
  std::deque<std::vector<int32_t>> tokens;
  std::vector<TokenBatch> batches;
  std::vector<double> losses;
};

absl::Status Failure(const absl::Status& status) {
  if (status.ok() || !ReasonOf(status).empty()) return status;
  return ErrorWithReason(status.code(), "rank_failed", status.message());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Node>> Node::Create(const NodeOptions& options, const Parts& parts) {
  DISTRO_RETURN_IF_ERROR(Validate(options.fsdp, /*cuda=*/false));
  const std::vector<std::vector<int>> units = TensorsOfUnits(*parts.model);
  DISTRO_RETURN_IF_ERROR(CheckPlan(options, parts, units));
  DISTRO_ASSIGN_OR_RETURN(ShardPlan shards, ShardPlan::Create(*parts.layout, units, options.ranks));
  DISTRO_ASSIGN_OR_RETURN(ShardPlan whole, ShardPlan::Create(*parts.layout, units, 1));
  auto node = absl::WrapUnique(new Node(options, parts, std::move(shards), std::move(whole)));
  DISTRO_RETURN_IF_ERROR(node->Start());
  return node;
}

Node::Node(const NodeOptions& options, const Parts& parts, ShardPlan shards, ShardPlan whole)
    : options_(options),
      parts_(parts),
      shards_(std::move(shards)),
      whole_(std::move(whole)),
      ranks_(options.ranks),
      tensor_hashes_(parts.layout->tensors().size()) {}

Node::~Node() = default;

bool Node::has_stuck_rank() const { return threads_->stuck(); }

int Node::ranks() const { return static_cast<int>(ranks_.size()); }

absl::Status Node::Start() {
  threads_ = std::make_unique<RankThreads>(
      MakeThreadGroup(options_.ranks, ThreadGroupOptions{.watchdog = options_.rank_timeout})
          ->TakeCommunicators(),
      RankThreadsOptions{.torch_threads = options_.torch_threads,
                         .watchdog = options_.rank_timeout + absl::Minutes(1)});
  DISTRO_RETURN_IF_ERROR(Failure(
      threads_->Run("allocate", [this](int number, Communicator& communicator) -> absl::Status {
        DISTRO_ASSIGN_OR_RETURN(ranks_[number], Rank::Create(options_, parts_.lookahead,
                                                             {.layout = parts_.layout,
                                                              .model = parts_.model,
                                                              .shards = &shards_,
                                                              .whole = &whole_,
                                                              .communicator = &communicator}));
        return absl::OkStatus();
      })));
  std::vector<const OptimizerShard*> shards;
  for (const auto& rank : ranks_) shards.push_back(&rank->optimizer());
  if (!ShardsMomentum(options_.fsdp.sharding)) shards.resize(1);
  optimizer_ = std::make_unique<Optimizer>(parts_.layout, std::move(shards));
  return absl::OkStatus();
}

absl::Status Node::Run(absl::string_view operation, RankWork work) {
  return Failure(
      threads_->Run(operation, [this, work = std::move(work)](int number, Communicator&) {
        return work(*ranks_[number], number);
      }));
}

absl::Status Node::RunOnMomentum(absl::string_view operation, RankWork work) {
  const absl::Status status = Run(operation, std::move(work));
  if (!status.ok()) momentum_is_whole_ = false;
  return status;
}

absl::StatusOr<std::vector<double>> Node::RunOnBatches(absl::string_view operation,
                                                       absl::Span<const TokenBatch> batches,
                                                       BatchWork work) {
  auto shared = std::make_shared<SharedBatches>(batches);
  DISTRO_RETURN_IF_ERROR(Run(operation, [shared, work = std::move(work)](Rank& rank, int number) {
    const bool takes_part = number < static_cast<int>(shared->batches.size());
    const absl::StatusOr<double> loss = work(rank, takes_part ? &shared->batches[number] : nullptr);
    if (loss.ok() && takes_part) shared->losses[number] = *loss;
    return loss.status();
  }));
  return shared->losses;
}

absl::StatusOr<std::vector<double>> Node::GradientRound(absl::Span<const TokenBatch> batches,
                                                        GradientAt at, bool first) {
  return RunOnBatches("gradient", batches, [at, first](Rank& rank, const TokenBatch* batch) {
    return rank.Gradient(batch, at, first ? Accumulation::kStore : Accumulation::kAdd);
  });
}

absl::StatusOr<std::vector<double>> Node::Losses(absl::Span<const TokenBatch> batches) {
  return RunOnBatches("loss", batches,
                      [](Rank& rank, const TokenBatch* batch) { return rank.Loss(batch); });
}

absl::StatusOr<double> Node::RunForNorm(absl::string_view operation, SumWork work) {
  // Ranks with copies write the same sums; those of the first count.
  using Sums = std::vector<std::vector<double>>;
  auto sums = std::make_shared<Sums>(ShardsMomentum(options_.fsdp.sharding) ? 1 : ranks(),
                                     std::vector<double>(BlockRows(layout())));
  DISTRO_RETURN_IF_ERROR(Run(operation, [sums, work = std::move(work)](Rank& rank, int number) {
    return work(rank, absl::MakeSpan((*sums)[number % sums->size()]));
  }));
  return optimizer_->Norm((*sums)[0]);
}

absl::StatusOr<double> Node::FinishGradient(int64_t micro_batches) {
  return RunForNorm("finish gradient", [micro_batches](Rank& rank, absl::Span<double> row_sums) {
    return rank.FinishGradient(micro_batches, row_sums);
  });
}

absl::StatusOr<double> Node::MomentumNorm() {
  return RunForNorm("momentum norm", [](Rank& rank, absl::Span<double> row_sums) {
    rank.optimizer().RowSums(rank.optimizer().momentum(), row_sums);
    return absl::OkStatus();
  });
}

MemoryByCategory Node::memory() const {
  MemoryByCategory bytes = {};
  for (const auto& rank : ranks_) {
    for (int i = 0; i < kMemoryCategories; ++i)
      bytes[i] += rank->memory().now(static_cast<MemoryCategory>(i));
  }
  return bytes;
}

absl::Status Node::MakeLookahead(float eta) {
  return Run("lookahead", [eta](Rank& rank, int) { return rank.MakeLookahead(eta); });
}

absl::StatusOr<std::vector<SharedBytes>> Node::Compress(RoundId round,
                                                        const v1::StepParameters& step,
                                                        double norm) {
  const CompressOptions options = Optimizer::CompressionOf(step, norm);
  optimizer_->ForgetPending();
  DISTRO_RETURN_IF_ERROR(RunOnMomentum("compress", [&](Rank& rank, int) {
    rank.Compress(options);
    return absl::OkStatus();
  }));
  optimizer_->SetPending({.round = round, .k = options.k});
  return EncodePending();
}

absl::StatusOr<std::vector<SharedBytes>> Node::EncodePending() {
  std::vector<SharedBytes> payloads(layout().segments());
  DISTRO_RETURN_IF_ERROR(Run("encode", [&](Rank&, int number) {
    for (size_t i = number; i < payloads.size(); i += ranks_.size())
      payloads[i] = optimizer_->EncodeSegment(SegmentId(static_cast<uint32_t>(i)));
    return absl::OkStatus();
  }));
  return payloads;
}

absl::Status Node::Feedback(const CommittedRound& round, int member) {
  const std::vector<bool> included = optimizer_->TakeFeedback(round, member);
  if (included.empty()) return absl::OkStatus();
  return RunOnMomentum("feedback", [&](Rank& rank, int) {
    rank.optimizer().Feedback(included);
    return absl::OkStatus();
  });
}

absl::StatusOr<Node::Kept> Node::kept() const {
  if (momentum_is_whole_)
    return Kept{.momentum = optimizer_->momentum(), .optimizer = optimizer_.get()};
  return absl::FailedPreconditionError("a rank failed while it changed the momentum");
}

absl::Status Node::Restore(const StateReader::Contents& contents) {
  optimizer_->ForgetPending();
  DISTRO_RETURN_IF_ERROR(RunOnMomentum("restore", [&](Rank& rank, int) {
    OptimizerShard& shard = rank.optimizer();
    for (size_t i = 0; i < shard.runs().size(); ++i) {
      const ShardRun& run = shard.runs()[i];
      const absl::Span<float> to = shard.momentum()[i];
      std::memcpy(to.data(),
                  contents.momentum[run.tensor].data() + run.first_element * sizeof(float),
                  to.size() * sizeof(float));
    }
    if (contents.pending.has_value()) shard.RestorePending(*contents.pending);
    return absl::OkStatus();
  }));
  if (contents.pending.has_value())
    optimizer_->SetPending({.round = contents.pending->round, .k = contents.pending->k});
  return absl::OkStatus();
}

}  // namespace distro::worker
