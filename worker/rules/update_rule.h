// The interface of a learning method on the worker (docs/algorithm.md, "A worker's step"): takes
// gradients, makes updates, keeps its state, applies feedback. Trainer, node, ranks and state files
// use a method only through this header. To add a method, add an UpdateRuleKind and a line to
// RuleOf and RuleOfModule.
//
// Each rank has an UpdateRule for its runs of block rows, on its device. A run is itself a matrix,
// so a rule treats its runs as whole tensors, except where a step needs a whole matrix
// (whole_matrices.h). Results are independent of sharding. The pending update of a block does not
// depend on other blocks; the worker assembles the blocks of a segment (optimizer.h).
//
//   rule->TakeStep(step, 0, norm, gradient, copy);  // for each step of the round
//   rule->IsFinite(step, parameters, copy);  // with local steps: is their outcome, at all ranks?
//   rule->Compress(step, parameters, copy);  // makes the pending update
//   kind.encode(identity, k, blocks);        // the payload of a segment, always the same bytes
//   rule->Feedback(round, decoded, member);  // subtracts what the round included
//
// An operation enqueues all its work and then waits once; its status is the device's. Not
// thread-safe: used on the rank's thread, or by others while that thread is idle.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/method/codec/payload_framing.h"
#include "common/method/methods.h"
#include "common/model/architecture.h"
#include "common/model/layout/layout.h"
#include "common/run/record/committed_round.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"
#include "kernels/backend.h"
#include "kernels/deltas_backend.h"
#include "kernels/device.h"
#include "worker/plan/shard_plan.h"
#include "worker/rules/block_arrays.h"
#include "worker/rules/deltas/delta_readings.h"
#include "worker/rules/deltas/inner_backend.h"
#include "worker/rules/deltas/orthogonalizer.h"
#include "worker/rules/device_result.h"
#include "worker/rules/rank_exchange.h"

namespace distro::worker {

// Elements of runs, one span per run, each f32 [run.matrix.elements]; borrowed.
using RunSpans = std::vector<absl::Span<float>>;

// The factor that scales a gradient of this norm to at most `clip_norm`.
inline float ClipScale(double norm, float clip_norm) {
  return norm > clip_norm ? static_cast<float>(clip_norm / norm) : 1.0f;
}

// A rank's part of the model and its backends; borrowed, except the runs. Runs are in manifest
// order.
struct RuleShard {
  const Layout* layout = nullptr;
  std::vector<ShardRun> runs;
  Backend* backend = nullptr;
  Device* device = nullptr;
  // Only for a rule that takes local steps; otherwise nullptr.
  DeltaBackend* deltas = nullptr;
  InnerBackend* inner = nullptr;
  Orthogonalizer* orthogonalizer = nullptr;
  // The result that Feedback subtracts, where the device has it; nullptr: it uses the decoded one.
  DeviceResult* result = nullptr;
  // For collective operations of the node's ranks; nullptr: there is only one rank.
  RankExchange* exchange = nullptr;
  // The shards of all ranks; nullptr: every rank has everything.
  const ShardPlan* shards = nullptr;
};

// The update of a round whose result is not known yet: enough to apply its feedback, and to send
// the same bytes again.
struct PendingUpdate {
  RoundId round;
  int k = 0;                         // kept_per_block of its round
  std::vector<BlockBytes> segments;  // [segments]
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  // Takes the round's step `index` by its gradient; `norm`, over the whole model, is finite. A rule
  // of local steps changes `copy`, at which the gradient was computed. Other rules have one step,
  // index 0, and only borrow the gradient until Compress.
  virtual absl::Status TakeStep(const v1::StepParameters& step, int index, double norm,
                                const RunSpans& gradient, const RunSpans& copy) = 0;
  // For a rule that takes local steps: whether their outcome is finite. All ranks are asked; then
  // all call Compress, or all call Abandon.
  virtual absl::StatusOr<bool> IsFinite(const v1::StepParameters& /*step*/,
                                        const RunSpans& /*parameters*/, const RunSpans& /*copy*/) {
    return true;
  }
  // Makes the pending update from the gradients. With local steps, `parameters` is the start of the
  // copy.
  virtual absl::Status Compress(const v1::StepParameters& step, const RunSpans& parameters,
                                const RunSpans& copy) = 0;
  // Instead of Compress: leaves nothing pending, and discards the outcome of the local steps.
  virtual absl::Status Abandon() { return absl::OkStatus(); }
  // Resets to the state of a new worker, with nothing pending. FailedPrecondition: a rule without
  // local steps.
  virtual absl::Status Forget() {
    return absl::FailedPreconditionError("only a rule of local steps forgets its state");
  }
  // Applies feedback for the pending update of this round, in whose record this worker is
  // members[member].
  virtual absl::Status Feedback(const CommittedRound& round, const DecodedRound& decoded,
                                int member) = 0;
  // With overlap = 1: computes the parameters for the next gradient, while the result of the
  // pending update is awaited.
  virtual absl::Status Lookahead(float eta, const RunSpans& parameters, const RunSpans& out) = 0;

  // The state to save for a later process. The elements, [element_arrays], were passed to the rule,
  // in device memory; their owner saves and restores them.
  virtual absl::Span<const RunSpans> elements() const = 0;
  // The pending update: its arrays in the order of UpdateRuleKind::block_bytes, each run after run,
  // block after block.
  virtual std::vector<absl::string_view> pending() const = 0;
  // Restores its blocks from the whole model's pending update, which UpdateRuleKind::check has
  // accepted.
  virtual absl::Status RestorePending(const PendingUpdate& pending) = 0;
  // The number of local steps since the worker's state was created.
  virtual uint64_t local_steps() const { return 0; }
  virtual void RestoreLocalSteps(uint64_t /*steps*/) {}
  // Adds steps that the rule's caller has taken.
  virtual void CountLocalSteps(uint64_t /*steps*/) {}
  // Readings of this rank; nullopt if the rule has none.
  virtual std::optional<DeltaSums> sums() const { return std::nullopt; }
};

// A kind of rule: what the training loop asks of it, the needs of its state, its payloads, and a
// factory.
struct UpdateRuleKind {
  // Whether a round has several steps on a copy of the parameters, whose outcome is sent.
  bool takes_local_steps = false;
  // Whether a step, of Open or of a record, is one of the run that the rule was made for.
  std::function<bool(const v1::StepParameters& step)> accepts;
  // The learning rate of each step of the round. With overlap = 1, eta of the lookahead.
  std::vector<float> (*rates)(const v1::StepParameters& step) = nullptr;
  // Maximum norm of the local steps' outcome over the whole model; 0: no limit.
  double delta_clip = 0;
  // Tensors that such a step needs whole at one rank, [tensors]; empty: none.
  std::vector<bool> needs_whole = {};
  // The tensors that Muon steps, and that are sent as DCT, in the format of Open
  // (v1.DeltaParameters.as_dct); empty: a rule that has none.
  std::string as_dct = "";
  // Number of f32 [elements of the model] arrays that it keeps. Zeros for a new worker.
  int element_arrays;
  // The bytes of a block in each array of the pending update.
  std::vector<int64_t> (*block_bytes)(int k);
  // The same over all arrays.
  int64_t PendingBytes(int k) const {
    const std::vector<int64_t> bytes = block_bytes(k);
    return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
  }
  // Checks a segment of a pending update. InvalidArgument: the rule cannot have produced it, even
  // if its checksums are right.
  absl::Status (*check)(int k, const BlockPieces& segment);
  // The payload of a segment.
  std::string (*encode)(const PayloadIdentity& identity, int k, const BlockPieces& segment);
  // `elements`: [element_arrays], each with one span per run; their memory outlives the rule.
  std::function<std::unique_ptr<UpdateRule>(RuleShard shard, std::vector<RunSpans> elements)> make;
};

// Momentum of the gradient; sends the signs of its K strongest frequencies per block
// (sign_momentum.h).
extern const UpdateRuleKind kSignMomentum;

// Local steps of an ordinary optimizer; sends the K largest values of their outcome per block
// (delta_rule.h). `config` is of a deltas run; `model` has the tensors of `layout`, which is
// borrowed.
UpdateRuleKind LocalDeltas(const v1::RunConfig& config, const Layout* layout,
                           const Architecture& model);

// Whether the rule takes the local steps, with the run's inner optimizer, or its caller, with any.
enum class LocalStepsBy { kRule, kCaller };

// The same with given tensors [tensors] for Muon (MuonTensorsOf). kCaller: the rule keeps only the
// error buffer; the caller takes the steps and calls CountLocalSteps, not TakeStep; Abandon and
// Forget leave the inner optimizer to the caller.
UpdateRuleKind LocalDeltas(const v1::RunConfig& config, const Layout* layout,
                           std::vector<bool> by_muon, LocalStepsBy taken_by);

// The rule of a run. As above.
UpdateRuleKind RuleOf(const v1::RunConfig& config, const Layout* layout, const Architecture& model);

// The rule of a run whose workers are "python": local steps are taken by the caller.
// `model_config_json` is the run's. InvalidArgument: as MuonTensorsOf.
absl::StatusOr<UpdateRuleKind> RuleOfModule(const v1::RunConfig& config, const Layout* layout,
                                            absl::string_view model_config_json);

}  // namespace distro::worker
