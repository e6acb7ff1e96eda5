#include "worker/node/node.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/parallel.h"
#include "common/base/process/host_memory.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "worker/fsdp/rank_threads.h"
#include "worker/model/unit.h"
#include "worker/node/node_devices.h"
#include "worker/node/rank.h"
#include "worker/plan/memory_plan.h"

namespace distro::worker {
namespace {

std::vector<std::vector<int>> TensorsOfUnits(const Model& model) {
  std::vector<std::vector<int>> units;
  for (const auto& unit : model.units())
    units.emplace_back(unit->tensors().begin(), unit->tensors().end());
  return units;
}

absl::StatusOr<AvailableMemory> Available(const NodeOptions& options, const NodeDevices& devices) {
  DISTRO_ASSIGN_OR_RETURN(AvailableMemory available, devices.Memory(options.ranks));
  if (options.memory_limit_bytes > 0) {
    available.bytes = static_cast<int64_t>(options.memory_limit_bytes);
    available.reserve_bytes = 0;
    available.shared = false;
  }
  return available;
}

// The plan, which fits.
absl::StatusOr<MemoryPlan> CheckedPlan(const NodeOptions& options, const Node::Dependencies& deps,
                                       std::vector<std::vector<int>> units) {
  const MemoryRequest request = {.model = &deps.model->architecture(),
                                 .layout = deps.layout,
                                 .units = std::move(units),
                                 .ranks = options.ranks,
                                 .options = options.fsdp,
                                 .sequences = deps.micro_batch_samples,
                                 .positions = deps.sequence_length,
                                 .cuda = deps.devices->kind() == DeviceKind::kCuda,
                                 .element_arrays = deps.rule->element_arrays,
                                 .block_bytes = deps.rule->PendingBytes(deps.kept_per_block),
                                 .copy = deps.copy,
                                 .library_bytes = deps.devices->LibraryBytes(),
                                 .needs_whole = deps.rule->needs_whole};
  DISTRO_ASSIGN_OR_RETURN(const MemoryPlan plan, PlanMemory(request));
  for (int rank = 0; deps.log != nullptr && rank < options.ranks; ++rank)
    deps.log->Info("memory plan", {{"plan", plan.Describe(rank)}});
  DISTRO_ASSIGN_OR_RETURN(const AvailableMemory available, Available(options, *deps.devices));
  const absl::Status fits = CheckMemory(request, available);
  if (fits.ok()) return plan;
  if (!absl::IsResourceExhausted(fits)) return fits;
  return ErrorWithReason(fits.code(), "does_not_fit", fits.message());
}

int64_t BytesOfAllRanks(const MemoryPlan& plan) {
  int64_t bytes = 0;
  for (const RankMemoryPlan& rank : plan.ranks) bytes += rank.device_bytes + rank.host_bytes;
  return bytes;
}

// Batches that own their tokens, and their results: a stuck rank may access them at any time.
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

absl::StatusOr<std::unique_ptr<Node>> Node::Create(const NodeOptions& asked,
                                                   const Dependencies& given) {
  DISTRO_RETURN_IF_ERROR(Validate(asked.fsdp, asked.device));
  NodeOptions options = asked;
  Dependencies deps = given;
  if (deps.devices == nullptr) {
    DISTRO_ASSIGN_OR_RETURN(deps.devices, MakeDevices(options.device));
  }
  if (options.ranks == 0) options.ranks = deps.devices->default_ranks();
  DISTRO_RETURN_IF_ERROR(deps.devices->CheckRanks(options.ranks));
  const std::vector<std::vector<int>> units = TensorsOfUnits(*deps.model);
  DISTRO_ASSIGN_OR_RETURN(const MemoryPlan plan, CheckedPlan(options, deps, units));
  // Twice the plan's: it has no gaps between tensors, nor what is not a rank's.
  if (deps.devices->kind() == DeviceKind::kCpu)
    ReserveHugePages(std::min(2 * BytesOfAllRanks(plan), HostMemoryBytes()));
  DISTRO_ASSIGN_OR_RETURN(ShardPlan shards, ShardPlan::Create(*deps.layout, units, options.ranks));
  DISTRO_ASSIGN_OR_RETURN(ShardPlan whole, ShardPlan::Create(*deps.layout, units, 1));
  auto node = absl::WrapUnique(new Node(options, deps, std::move(shards), std::move(whole)));
  DISTRO_RETURN_IF_ERROR(node->Start());
  return node;
}

absl::StatusOr<int> Node::CheckDevices(const NodeOptions& options) {
  DISTRO_ASSIGN_OR_RETURN(const auto devices, MakeDevices(options.device));
  const int ranks = options.ranks > 0 ? options.ranks : devices->default_ranks();
  DISTRO_RETURN_IF_ERROR(devices->CheckRanks(ranks));
  return ranks;
}

int64_t Node::HostMemoryFor(const NodeOptions& options, int ranks, int64_t held) {
  if (options.device != DeviceKind::kCpu) return std::numeric_limits<int64_t>::max();
  if (options.memory_limit_bytes > 0)
    return held + ranks * static_cast<int64_t>(options.memory_limit_bytes);
  const int64_t all = HostMemoryBytes();
  return all - all / kHostReserveShare;
}

Node::Node(const NodeOptions& options, const Dependencies& deps, ShardPlan shards, ShardPlan whole)
    : Learner(deps.layout, *deps.rule, Cores()),
      options_(options),
      deps_(deps),
      shards_(std::make_shared<const ShardPlan>(std::move(shards))),
      whole_(std::make_shared<const ShardPlan>(std::move(whole))),
      ranks_(std::make_shared<Ranks>(options.ranks)) {}

Node::~Node() = default;

bool Node::has_stuck_rank() const { return threads_->stuck(); }

int Node::ranks() const { return options_.ranks; }

absl::Status Node::Start() {
  DISTRO_ASSIGN_OR_RETURN(
      auto communicators,
      deps_.devices->Connect(options_.ranks, options_.rank_timeout, collective_time_));
  threads_ = std::make_unique<RankThreads>(
      std::move(communicators),
      RankThreadsOptions{
          .torch_threads = options_.torch_threads,
          .watchdog = options_.rank_timeout + std::min(options_.rank_timeout, absl::Minutes(1)),
          .start = [devices = deps_.devices](int rank) { return devices->Use(rank); }});
  const Rank::Dependencies deps = {
      .layout = deps_.layout,
      .model = deps_.model,
      .shards = shards_,
      .whole = whole_,
      .rule = deps_.rule,
      .devices = deps_.devices,
      .communicator = nullptr,
      .micro_batch = {.sequences = deps_.micro_batch_samples, .positions = deps_.sequence_length}};
  DISTRO_RETURN_IF_ERROR(Failure(threads_->Run(
      "allocate",
      [ranks = ranks_, options = options_, copy = deps_.copy, deps](
          int number, Communicator& communicator) -> absl::Status {
        Rank::Dependencies own = deps;
        own.communicator = &communicator;
        DISTRO_ASSIGN_OR_RETURN((*ranks)[number], Rank::Create(options, copy, own));
        return communicator.Barrier("start");  // ranks that cannot reach each other are found now
      })));
  std::vector<ShardRule*> shards;
  for (const auto& rank : *ranks_) shards.push_back(&rank->shard_rule());
  SetShards(shards, ShardsMomentum(options_.fsdp.sharding) ? shards.size() : 1);
  return absl::OkStatus();
}

absl::Status Node::Run(absl::string_view operation, RankWork work) {
  return Failure(
      threads_->Run(operation, [ranks = ranks_, work = std::move(work)](int number, Communicator&) {
        return work(*(*ranks)[number], number);
      }));
}

absl::Status Node::RunOnShards(absl::string_view operation, ShardWork work) {
  return Failure(
      threads_->Run(operation,
                    [ranks = ranks_, work = std::move(work), name = std::string(operation)](
                        int number, Communicator& communicator) -> absl::Status {
                      DISTRO_RETURN_IF_ERROR(work((*ranks)[number]->shard_rule(), number));
                      return communicator.Check(name);
                    }));
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

absl::StatusOr<std::vector<float>> Node::NextLogits(absl::Span<const int32_t> tokens) {
  struct Shared {
    const std::vector<int32_t> tokens;
    std::vector<float> logits;
  };
  const auto shared = std::make_shared<Shared>(Shared{{tokens.begin(), tokens.end()}, {}});
  DISTRO_RETURN_IF_ERROR(Run("logits", [shared](Rank& rank, int number) -> absl::Status {
    const TokenBatch batch{.tokens = shared->tokens, .sequences = 1};
    DISTRO_ASSIGN_OR_RETURN(std::vector<float> logits,
                            rank.NextLogits(number == 0 ? &batch : nullptr));
    if (number == 0) shared->logits = std::move(logits);
    return absl::OkStatus();
  }));
  return shared->logits;
}

absl::StatusOr<double> Node::FinishGradient(int64_t micro_batches) {
  return NormOverShards("finish gradient", [ranks = ranks_, micro_batches](
                                               ShardRule&, int number, absl::Span<double> sums) {
    return (*ranks)[number]->FinishGradient(micro_batches, sums);
  });
}

absl::StatusOr<Learner::Kept> Node::kept() const {
  if (deps_.devices->kind() != DeviceKind::kCpu && has_stuck_rank())
    return absl::FailedPreconditionError("a rank did not return, and its device cannot be read");
  return Learner::kept();
}

absl::StatusOr<double> Node::PeakFlops() {
  const auto peak = std::make_shared<double>(0);
  DISTRO_RETURN_IF_ERROR(Run("peak", [peak](Rank& rank, int number) -> absl::Status {
    if (number > 0) return absl::OkStatus();
    DISTRO_ASSIGN_OR_RETURN(*peak, rank.PeakFlops());
    return absl::OkStatus();
  }));
  return *peak;
}

MemoryByCategory Node::memory() const {
  MemoryByCategory bytes = {};
  for (const auto& rank : *ranks_) {
    for (int i = 0; i < kMemoryCategories; ++i)
      bytes[i] += rank->memory().now(static_cast<MemoryCategory>(i));
  }
  return bytes;
}

absl::Status Node::BeginLocalSteps() {
  return Run("begin local steps", [](Rank& rank, int) { return rank.BeginLocalSteps(); });
}

absl::Status Node::MakeLookahead(float eta) {
  return Run("lookahead", [eta](Rank& rank, int) { return rank.MakeLookahead(eta); });
}

}  // namespace distro::worker
