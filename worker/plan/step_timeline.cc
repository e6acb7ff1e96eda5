#include "worker/plan/step_timeline.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace distro::worker {
namespace {

class Timeline {
 public:
  Timeline(const MemoryRequest& request, const ShardPlan& shards)
      : request_(request),
        shards_(shards),
        specs_(request.model->Units()),
        memory_(request.model->Memory(request.sequences, request.positions,
                                      BytesOf(request.options.param_dtype), request.cuda)),
        last_(static_cast<int>(memory_.units.size()) - 1) {
    for (int unit = 0; unit <= last_; ++unit) uses_.push_back(unit);
    for (int unit = last_ - 1; unit >= 0; --unit) uses_.push_back(unit);
    held_ = BatchBytes();
  }

  Moment Largest() {
    for (int unit = 0; unit <= last_; ++unit) ForwardUnit(unit);
    --use_;  // the last unit stays
    for (int unit = last_; unit >= 0; --unit) BackwardUnit(unit);
    FinishStep();
    return largest_;
  }

 private:
  const FsdpOptions& options() const { return request_.options; }
  int ElementBytes() const { return BytesOf(options().param_dtype); }
  bool ReducesEveryRound() const {
    return request_.ranks > 1 && options().reduce_every_micro_batch;
  }
  bool IsCheckpointed(int unit) const {
    const int every = options().checkpoint_every;
    return every > 0 && unit % every == 0 && unit < last_;
  }

  // Tokens with labels, contiguous labels, tables.
  int64_t BatchBytes() const {
    const int64_t tokens = int64_t{request_.sequences} * (request_.positions + 1);
    return 16 * tokens + memory_.tables;
  }

  // The flats that uses [first, first + count) need.
  std::set<int> Flats(int first, int count) const {
    std::set<int> flats;
    for (int use = first; use < first + count && use < static_cast<int>(uses_.size()); ++use) {
      for (const int tensor : request_.units[uses_[use]]) flats.insert(shards_.place(tensor).unit);
    }
    return flats;
  }
  // The gathered bytes that uses [first, first + count) need.
  int64_t Gathered(int first, int count) const {
    const bool gathers = (ShardsParameters(options().sharding) && request_.ranks > 1) ||
                         options().param_dtype != FloatType::kF32 || options().cpu_offload;
    if (!gathers) return 0;
    int64_t bytes = 0;
    for (const int flat : Flats(first, count)) {
      bytes += shards_.units()[flat].elements * ElementBytes();
    }
    return bytes;
  }
  int64_t GatheredNow() const { return Gathered(use_, options().prefetch_units + 1); }

  // The bytes of f32 elements from the host that are converted when the next use is acquired: the
  // rank's part of one flat at a time.
  int64_t Arriving() const {
    if (!options().cpu_offload || options().param_dtype == FloatType::kF32) return 0;
    const std::set<int> before = use_ > 0 ? Flats(use_, options().prefetch_units) : std::set<int>();
    int64_t most = 0;
    for (const int flat : Flats(use_, options().prefetch_units + 1)) {
      if (before.count(flat) == 0) most = std::max(most, LargestPart(shards_.units()[flat]));
    }
    return 4 * most;
  }
  int64_t LargestPart(const UnitFlat& flat) const {
    return ShardsParameters(options().sharding) ? LongestRange(flat.cuts) : flat.elements;
  }

  // The bytes of a reduction of the unit's gradients: the flat, and on GPUs the rank's range of the
  // result, which is then added to the sums or converted (NcclCommunicator).
  int64_t Reducing(int unit) const {
    const UnitFlat& flat = shards_.units()[unit];
    return (flat.elements + (request_.cuda ? LongestRange(flat.cuts) : 0)) *
           BytesOf(options().reduce_dtype);
  }

  // The bytes of the unit's gradients whose tensors are also used by a unit in [first, end).
  int64_t BytesSharedWith(int unit, int first, int end) const {
    int64_t bytes = 0;
    for (const int tensor : request_.units[unit]) {
      const auto uses = [&](const std::vector<int>& tensors) {
        return std::count(tensors.begin(), tensors.end(), tensor) > 0;
      };
      if (std::any_of(request_.units.begin() + first, request_.units.begin() + end, uses))
        bytes += request_.layout->tensors()[tensor].matrix.elements * ElementBytes();
    }
    return bytes;
  }

  void Consider(absl::string_view phase, int unit, int64_t gathered, int64_t activations,
                int64_t arriving = 0) {
    Moment moment{.phase = absl::StrCat(phase, " of ", specs_[unit].name),
                  .gathered = gathered,
                  .activations = activations,
                  .workspace = under_way_ + shared_parts_ + arriving};
    if (moment.total() > largest_.total()) largest_ = std::move(moment);
  }

  void ConsiderArrival(int unit, int64_t activations) {
    const int64_t arriving = Arriving();
    if (arriving > 0) Consider("copy to the device", unit, GatheredNow(), activations, arriving);
  }

  void ForwardUnit(int unit) {
    const UnitMemory& memory = memory_.units[unit];
    const bool plain = IsCheckpointed(unit);
    ConsiderArrival(unit, held_);
    Consider("forward", unit, GatheredNow(),
             held_ + (plain ? memory.plain_peak : memory.forward_peak));
    held_ += memory.output + (plain ? 0 : memory.saved);
    ++use_;
  }

  void BackwardUnit(int unit) {
    const UnitMemory& memory = memory_.units[unit];
    const int64_t upstream = memory.output;  // the gradient of the output is as large as it is
    if (unit < last_) ConsiderArrival(unit, held_ + upstream);
    if (IsCheckpointed(unit)) {
      held_ -= memory.output;  // the next unit had it
      Consider("recomputation", unit, GatheredNow(), held_ + upstream + memory.forward_peak);
      held_ += memory.output + memory.saved;
    }
    held_ -= memory.saved;
    Consider("backward", unit, GatheredNow(), held_ + upstream + memory.backward_peak);
    held_ -= memory.output;
    ++use_;
    ConsiderReduction(unit);
  }

  void ConsiderReduction(int unit) {
    const int64_t next_upstream = unit > 0 ? memory_.units[unit - 1].output : 0;
    int64_t gradients = memory_.units[unit].gradients;
    const int64_t gathered = Gathered(use_, options().prefetch_units);
    // A part of a shared tensor waits for the parts of earlier units, and is summed with those of
    // later units.
    const int64_t waiting = BytesSharedWith(unit, 0, unit);
    const int64_t summed = BytesSharedWith(unit, unit + 1, last_ + 1);
    if (summed > 0) Consider("sum of gradients", unit, gathered, held_ + gradients + summed);
    shared_parts_ += waiting - summed;
    gradients -= waiting;
    if (ReducesEveryRound()) under_way_ = Reducing(unit);
    Consider("reduction", unit, gathered, held_ + next_upstream + gradients);
  }

  // Whole gradients, in the type in which they are reduced.
  void FinishStep() {
    under_way_ = 0;
    held_ = 0;
    if (request_.ranks == 1 || ReducesEveryRound()) return;
    for (int unit = 0; unit <= last_ && options().reduce_dtype == FloatType::kBf16; ++unit) {
      under_way_ = Reducing(unit);
      Consider("last reduction", unit, 0, 0);
    }
  }

  const MemoryRequest& request_;
  const ShardPlan& shards_;
  const std::vector<UnitSpec> specs_;
  const ModelMemory memory_;
  const int last_;
  std::vector<int> uses_;

  int use_ = 0;
  int64_t held_ = 0;          // activations between units
  int64_t under_way_ = 0;     // of the reduction
  int64_t shared_parts_ = 0;  // of tensors that units before use too
  Moment largest_;
};

}  // namespace

Moment LargestMoment(const MemoryRequest& request, const ShardPlan& shards) {
  return Timeline(request, shards).Largest();
}

}  // namespace distro::worker
