#include "worker/node/rank.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace distro::worker {
namespace {

// How a buffer is laid out: as the rank's shard, or as everything.
enum class Extent { kShard, kWhole };

RunSpans SpansOf(const RankShard& shard, Extent extent, RankBuffer* buffer) {
  RunSpans spans;
  for (const ShardRun& run : shard.runs) {
    const int64_t offset = extent == Extent::kShard ? run.shard_offset : run.whole_offset;
    spans.push_back(buffer->floats().subspan(offset, run.matrix.elements));
  }
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

absl::StatusOr<std::unique_ptr<Rank>> Rank::Create(const NodeOptions& options, bool lookahead,
                                                   const Parts& parts) {
  auto rank = absl::WrapUnique(new Rank(parts));
  DISTRO_RETURN_IF_ERROR(rank->Allocate(options, lookahead));
  return rank;
}

absl::Status Rank::Allocate(const NodeOptions& options, bool lookahead) {
  const at::Device device(at::kCPU);
  const RankShard& shard = parts_.shards->shard(parts_.communicator->rank());
  const RankShard& whole = parts_.whole->shard(0);
  const Sharding sharding = options.fsdp.sharding;
  parameter_shard_ = ShardsParameters(sharding) ? &shard : &whole;
  optimizer_shard_ = ShardsMomentum(sharding) ? &shard : &whole;
  gathers_lookahead_ = ShardsMomentum(sharding) && !ShardsParameters(sharding);
  driver_ = std::make_unique<UnitDriver>(options.fsdp, device,
                                         UnitDriver::Parts{.model = parts_.model,
                                                           .shards = parts_.shards,
                                                           .whole = parts_.whole,
                                                           .communicator = parts_.communicator,
                                                           .memory = &memory_});
  const auto create = [&](MemoryCategory category, int64_t elements) {
    return RankBuffer::Create(category, elements, device, &memory_);
  };
  DISTRO_ASSIGN_OR_RETURN(parameters_,
                          create(MemoryCategory::kParameters, driver_->parameter_elements()));
  DISTRO_ASSIGN_OR_RETURN(gradient_,
                          create(MemoryCategory::kGradients, driver_->gradient_elements()));
  DISTRO_ASSIGN_OR_RETURN(momentum_,
                          create(MemoryCategory::kMomentum, optimizer_shard_->elements()));
  const Extent of_parameters = ShardsParameters(sharding) ? Extent::kShard : Extent::kWhole;
  if (lookahead) {
    DISTRO_ASSIGN_OR_RETURN(lookahead_,
                            create(MemoryCategory::kWorkspace, driver_->parameter_elements()));
    lookahead_runs_ = SpansOf(*optimizer_shard_, of_parameters, &lookahead_);
  }
  parameter_spans_ = SpansOf(*parameter_shard_, Extent::kShard, &parameters_);
  parameter_runs_ = SpansOf(*optimizer_shard_, of_parameters, &parameters_);
  gradient_runs_ = SpansOf(*optimizer_shard_,
                           ShardsGradients(sharding) ? Extent::kShard : Extent::kWhole, &gradient_);
  updater_ = std::make_unique<TileUpdater>(parts_.layout, RowsOf(*parameter_shard_));
  optimizer_ =
      std::make_unique<OptimizerShard>(parts_.layout, optimizer_shard_->runs, backend_.get(),
                                       SpansOf(*optimizer_shard_, Extent::kShard, &momentum_));
  return absl::OkStatus();
}

void Rank::Load(const SnapshotFile& snapshot) {
  for (size_t i = 0; i < parameter_spans_.size(); ++i) {
    const ShardRun& run = parameter_shard_->runs[i];
    const absl::string_view bytes =
        snapshot.tensor(run.tensor)
            .substr(run.first_element * sizeof(float), run.matrix.elements * sizeof(float));
    std::memcpy(parameter_spans_[i].data(), bytes.data(), bytes.size());
  }
  Hash();
}

void Rank::Hash() {
  tensor_hashes_.assign(parts_.layout->tensors().size(), 0);
  for (const Tile& tile : updater_->tiles()) {
    tensor_hashes_[updater_->parts()[tile.part].tensor] +=
        updater_->Hash(tile, backend_.get(), parameter_spans_[tile.part]);
  }
}

absl::Status Rank::Apply(const v1::StepParameters& step, absl::Span<const Votes> votes) {
  std::fill(tensor_hashes_.begin(), tensor_hashes_.end(), 0);
  for (const Tile& tile : updater_->tiles()) {
    const absl::Span<float> part = parameter_spans_[tile.part];
    DISTRO_RETURN_IF_ERROR(updater_->Update(tile, step, votes, backend_.get(), part));
    tensor_hashes_[updater_->parts()[tile.part].tensor] +=
        updater_->Hash(tile, backend_.get(), part);
  }
  return absl::OkStatus();
}

absl::StatusOr<double> Rank::Gradient(const TokenBatch* batch, GradientAt at,
                                      Accumulation accumulation) {
  const RankBuffer& parameters = at == GradientAt::kLookahead ? lookahead_ : parameters_;
  return driver_->Gradient(batch, parameters.tensor(), accumulation, gradient_.tensor());
}

absl::Status Rank::FinishGradient(int64_t micro_batches, absl::Span<double> row_sums) {
  DISTRO_RETURN_IF_ERROR(driver_->FinishGradient(gradient_.tensor()));
  if (micro_batches > 1) {
    const float divisor = static_cast<float>(micro_batches);
    for (const absl::Span<float> run : gradient_runs_) {
      for (float& value : run) value /= divisor;
    }
  }
  optimizer_->RowSums(gradient_runs_, row_sums);
  return absl::OkStatus();
}

absl::StatusOr<double> Rank::Loss(const TokenBatch* batch) {
  return driver_->Loss(batch, parameters_.tensor());
}

absl::Status Rank::MakeLookahead(float eta) {
  optimizer_->Lookahead(eta, parameter_runs_, lookahead_runs_);
  return gathers_lookahead_ ? GatherLookahead() : absl::OkStatus();
}

// Each rank has made the copy where its momentum is: the ranges of its shard in every unit's flat.
absl::Status Rank::GatherLookahead() {
  const int rank = parts_.communicator->rank();
  for (size_t u = 0; u < parts_.shards->units().size(); ++u) {
    const UnitFlat& unit = parts_.shards->units()[u];
    const at::Tensor flat =
        lookahead_.tensor().narrow(0, parts_.whole->shard(0).unit_offsets[u], unit.elements);
    DISTRO_ASSIGN_OR_RETURN(
        const Transfer transfer,
        parts_.communicator->StartAllGather(
            absl::StrCat("lookahead of unit ", u), unit.cuts,
            flat.narrow(0, unit.cuts[rank], unit.cuts[rank + 1] - unit.cuts[rank]), flat));
    DISTRO_RETURN_IF_ERROR(parts_.communicator->Wait(transfer));
  }
  return absl::OkStatus();
}

}  // namespace distro::worker
