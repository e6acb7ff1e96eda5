#include "worker/node/rank.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/memory/memory.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "worker/model/peak_flops.h"
#include "worker/node/offloaded.h"
#include "worker/node/torch_orthogonalizer.h"

namespace distro::worker {
namespace {

// Rows of the matrices with which a device's peak is measured.
constexpr int64_t kCpuProduct = 512, kGpuProduct = 8192;

// The layout of a buffer: the rank's shard, or the whole model.
enum class Extent { kShard, kWhole };

int64_t OffsetOf(const ShardRun& run, Extent extent) {
  return extent == Extent::kShard ? run.shard_offset : run.whole_offset;
}

RunSpans SpansOf(const RankShard& shard, Extent extent, RankBuffer* buffer) {
  RunSpans spans;
  for (const ShardRun& run : shard.runs)
    spans.push_back(buffer->floats().subspan(OffsetOf(run, extent), run.matrix.elements));
  return spans;
}

std::vector<TensorRows> RowsOf(const RankShard& shard) {
  std::vector<TensorRows> rows;
  for (const ShardRun& run : shard.runs) {
    rows.push_back(
        {.tensor = run.tensor, .first_row = run.first_block_row, .rows = run.block_rows});
  }
  return rows;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Rank>> Rank::Create(const NodeOptions& options, bool copy,
                                                   const Dependencies& deps) {
  auto rank = absl::WrapUnique(new Rank(deps));
  DISTRO_ASSIGN_OR_RETURN(rank->compute_, deps.devices->Open(deps.communicator->rank()));
  DISTRO_RETURN_IF_ERROR(rank->Allocate(options, copy));
  DISTRO_RETURN_IF_ERROR(rank->compute_.memory->Finish());
  return rank;
}

absl::Status Rank::Allocate(const NodeOptions& options, bool copy) {
  param_dtype_ = options.fsdp.param_dtype;
  const Sharding sharding = options.fsdp.sharding;
  const RankShard& shard = deps_.shards->shard(deps_.communicator->rank());
  const RankShard& whole = deps_.whole->shard(0);
  parameter_shard_ = ShardsParameters(sharding) ? &shard : &whole;
  optimizer_shard_ = ShardsMomentum(sharding) ? &shard : &whole;
  gathers_copy_ = ShardsMomentum(sharding) && !ShardsParameters(sharding);
  if (options.fsdp.cpu_offload) host_ = OpenHost();
  driver_ = std::make_unique<UnitDriver>(
      options.fsdp, compute_.torch,
      UnitDriver::Dependencies{
          .model = deps_.model,
          .shards = deps_.shards.get(),
          .whole = deps_.whole.get(),
          .communicator = deps_.communicator,
          .memory = &memory_,
          .pins_host_memory = compute_.pins_host_memory,
          .padded_to = compute_.plans_for_shapes ? deps_.micro_batch : BatchShape{}});
  DISTRO_RETURN_IF_ERROR(AllocateBuffers(options, copy));
  ShardArrays arrays = MakeSpans(sharding);
  Device* const memory = master().memory.get();
  updater_ =
      std::make_unique<TileUpdater>(deps_.layout, RowsOf(*parameter_shard_),
                                    memory->has_own_memory() ? TileSize::kPart : TileSize::kCache);
  result_ = std::make_unique<StagedResult>(memory, updater_->SegmentOrder());
  std::vector<RunSpans> elements;
  for (RankBuffer& buffer : elements_)
    elements.push_back(SpansOf(*optimizer_shard_, Extent::kShard, &buffer));
  shard_rule_ =
      std::make_unique<ShardRule>(MakeRuleShard(sharding), *deps_.rule, std::move(elements));
  shard_rule_->arrays() = std::move(arrays);
  DISTRO_RETURN_IF_ERROR(hashes_.emplace(memory).Resize(deps_.layout->tensors().size()));
  return invalid_.emplace(memory).Resize(1);
}

RuleShard Rank::MakeRuleShard(Sharding sharding) {
  if (deps_.communicator->ranks() > 1)
    exchange_ =
        std::make_unique<CommunicatorExchange>(deps_.communicator, master().torch, compute_.torch);
  orthogonalizer_ =
      compute_.memory->has_own_memory()
          ? MakeTorchOrthogonalizer(master().torch, compute_.torch,
                                    compute_.torch.is_cuda() ? at::kBFloat16 : at::kFloat)
          : MakeCpuOrthogonalizer();
  return {.layout = deps_.layout,
          .runs = optimizer_shard_->runs,
          .backend = master().backend.get(),
          .device = master().memory.get(),
          .deltas = master().deltas.get(),
          .inner = master().inner.get(),
          .orthogonalizer = orthogonalizer_.get(),
          .result = result_.get(),
          .exchange = exchange_.get(),
          .shards = ShardsMomentum(sharding) ? deps_.shards.get() : nullptr};
}

absl::Status Rank::AllocateBuffers(const NodeOptions& options, bool copy) {
  const bool offload = options.fsdp.cpu_offload;
  const auto create = [&](MemoryCategory category, int64_t elements, bool on_host) {
    return on_host ? MakeOffloadedBuffer(compute_.memory, category, elements, &memory_)
                   : RankBuffer::Create(category, elements, compute_.torch, &memory_);
  };
  DISTRO_ASSIGN_OR_RETURN(
      parameters_, create(MemoryCategory::kParameters, driver_->parameter_elements(), offload));
  DISTRO_ASSIGN_OR_RETURN(gradient_, create(MemoryCategory::kGradients,
                                            driver_->gradient_elements(), /*on_host=*/false));
  for (int array = 0; array < deps_.rule->element_arrays; ++array) {
    DISTRO_ASSIGN_OR_RETURN(
        elements_.emplace_back(),
        create(MemoryCategory::kMomentum, optimizer_shard_->elements(), offload));
  }
  if (offload) {
    DISTRO_ASSIGN_OR_RETURN(
        host_gradient_, create(MemoryCategory::kGradients, driver_->gradient_elements(), offload));
  }
  if (copy) {
    DISTRO_ASSIGN_OR_RETURN(
        copy_, create(MemoryCategory::kWorkspace, driver_->parameter_elements(), offload));
  }
  return absl::OkStatus();
}

ShardArrays Rank::MakeSpans(Sharding sharding) {
  const Extent of_parameters = ShardsParameters(sharding) ? Extent::kShard : Extent::kWhole;
  const Extent of_gradients = ShardsGradients(sharding) ? Extent::kShard : Extent::kWhole;
  parameter_spans_ = SpansOf(*parameter_shard_, Extent::kShard, &parameters_);
  for (const ShardRun& run : optimizer_shard_->runs)
    gradient_offsets_.push_back(OffsetOf(run, of_gradients));
  ShardArrays arrays = {.gradient = SpansOf(*optimizer_shard_, of_gradients,
                                            host_.has_value() ? &host_gradient_ : &gradient_),
                        .parameters = SpansOf(*optimizer_shard_, of_parameters, &parameters_),
                        .copy = {}};
  if (copy_.elements() > 0) arrays.copy = SpansOf(*optimizer_shard_, of_parameters, &copy_);
  return arrays;
}

absl::Status Rank::Load(const SnapshotFile& snapshot) {
  for (size_t i = 0; i < parameter_spans_.size(); ++i) {
    const ShardRun& run = parameter_shard_->runs[i];
    const absl::string_view bytes = BytesOf(run, snapshot.tensor(run.tensor));
    master().memory->CopyIn(bytes.data(), bytes.size(), parameter_spans_[i].data());
  }
  hashes_->Fill(0);
  for (const Tile& tile : updater_->tiles()) {
    updater_->Hash(tile, master().backend.get(), parameter_spans_[tile.part],
                   &hashes_->device()[updater_->parts()[tile.part].tensor]);
  }
  return FinishHashes();
}

absl::Status Rank::FinishHashes() {
  hashes_->CopyOut();
  return master().memory->Finish();
}

absl::Status Rank::Apply(const v1::StepParameters& step, const DecodedRound& decoded) {
  const int threads = std::max(1, Cores() / deps_.communicator->ranks());
  DISTRO_RETURN_IF_ERROR(result_->Take(&decoded, threads));
  hashes_->Fill(0);
  invalid_->Fill(0xFF);
  Backend* const backend = master().backend.get();
  for (const Tile& tile : updater_->tiles()) {
    const absl::Span<float> part = parameter_spans_[tile.part];
    uint32_t* const invalid = invalid_->device().data();
    std::visit(
        [&]<typename Result>(const std::vector<Result>&) {
          const auto of = [&](SegmentId s) { return result_->Of<Result>(s); };
          updater_->Update(tile, step, of, backend, part, invalid);
        },
        decoded);
    updater_->Hash(tile, backend, part, &hashes_->device()[updater_->parts()[tile.part].tensor]);
  }
  invalid_->CopyOut();
  DISTRO_RETURN_IF_ERROR(FinishHashes());
  return invalid_->host()[0] == kAllBlocksValid ? absl::OkStatus() : InvalidResult();
}

absl::StatusOr<double> Rank::Gradient(const TokenBatch* batch, GradientAt at,
                                      Accumulation accumulation) {
  if (at == GradientAt::kCopy)
    DISTRO_RETURN_IF_ERROR(CatchTorch("copy of the parameters", [&] { return GatherCopy(); }));
  const RankBuffer& parameters = at == GradientAt::kCopy ? copy_ : parameters_;
  DISTRO_ASSIGN_OR_RETURN(const double loss, driver_->Gradient(batch, parameters.tensor(),
                                                               accumulation, gradient_.tensor()));
  DISTRO_RETURN_IF_ERROR(FinishCollectives("gradient"));
  return loss;
}

absl::Status Rank::FinishCollectives(absl::string_view what) {
  DISTRO_RETURN_IF_ERROR(compute_.memory->Finish());
  return deps_.communicator->Check(what);
}

absl::Status Rank::FinishGradient(int64_t micro_batches, absl::Span<double> row_sums) {
  DISTRO_RETURN_IF_ERROR(driver_->FinishGradient(gradient_.tensor()));
  DISTRO_RETURN_IF_ERROR(CatchTorch("gradient", [&] { return MoveGradient(micro_batches); }));
  copy_is_gathered_ = !gathers_copy_;
  return shard_rule_->SumOf(shard_rule_->arrays().gradient, row_sums);
}

// Converts the gradient from a sum to a mean, and moves it to the memory of the rule's state.
absl::Status Rank::MoveGradient(int64_t micro_batches) {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < gradient_offsets_.size(); ++i) {
    const int64_t elements = optimizer_shard_->runs[i].matrix.elements;
    at::Tensor run = gradient_.tensor().narrow(0, gradient_offsets_[i], elements);
    if (micro_batches > 1) run.div_(static_cast<double>(micro_batches));
    if (!host_.has_value()) continue;
    at::Tensor on_host = host_gradient_.tensor().narrow(0, gradient_offsets_[i], elements);
    on_host.copy_(run, /*non_blocking=*/true);
  }
  return FinishCollectives("sum of gradients");
}

absl::StatusOr<double> Rank::Loss(const TokenBatch* batch) {
  DISTRO_ASSIGN_OR_RETURN(const double loss, driver_->Loss(batch, parameters_.tensor()));
  DISTRO_RETURN_IF_ERROR(FinishCollectives("loss"));
  return loss;
}

absl::StatusOr<std::vector<float>> Rank::NextLogits(const TokenBatch* batch) {
  DISTRO_ASSIGN_OR_RETURN(std::vector<float> logits,
                          driver_->NextLogits(batch, parameters_.tensor()));
  DISTRO_RETURN_IF_ERROR(FinishCollectives("logits"));
  return logits;
}

absl::StatusOr<double> Rank::PeakFlops() {
  const bool gpu = compute_.memory->has_own_memory();
  return MeasurePeakFlops(
      {.device = compute_.torch,
       .type = gpu && param_dtype_ == FloatType::kBf16 ? at::kBFloat16 : at::kFloat,
       .size = gpu ? kGpuProduct : kCpuProduct,
       .finish = [this] { return compute_.memory->Finish(); }});
}

}  // namespace distro::worker
