// The seam between a worker and the method by which it learns (docs/algorithm.md, "A worker's
// step"): gradient in, update out, state of its own, feedback. Trainer, node, ranks and state files
// know a method by this header only; a further one is a further UpdateRuleKind, and a line in
// RuleOf.
//
// Each rank has an UpdateRule for its runs of block rows, on its device. A run is a matrix, so a
// rule works on its runs as if they were whole tensors, but where a step needs one whole
// (whole_matrices.h): what it gives does not show how the model is cut. What one rank makes pending
// of a block does not depend on other blocks; the worker puts the blocks of a segment together
// (optimizer.h).
//
//   rule->TakeGradient(step, 0, norm, gradient, copy);  // of each step of the round
//   rule->IsFinite(step, parameters, copy);  // of local steps: is what they did? at all ranks?
//   rule->Compress(step, parameters, copy);  // what was taken becomes an update, which is pending
//   kind.encode(identity, k, blocks);        // a segment of it as a payload, the same bytes as
//                                            // often as it is asked for
//   rule->Feedback(round, decoded, member);  // what the round took of it
//
// An operation is enqueued whole and finished once; its status is the device's. Not thread-safe:
// used on the rank's thread, or by others while that one does nothing.
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
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/codec/payload.h"
#include "common/layout/layout.h"
#include "common/model/architecture.h"
#include "common/round_log/committed_round.h"
#include "common/round_log/decoded_round.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"
#include "kernels/backend.h"
#include "kernels/delta_backend.h"
#include "kernels/device.h"
#include "worker/optimizer/delta_readings.h"
#include "worker/optimizer/inner_backend.h"
#include "worker/optimizer/orthogonalizer.h"
#include "worker/optimizer/rank_exchange.h"
#include "worker/plan/shard_plan.h"

namespace distro::worker {

// Elements of runs, one span a run, each f32 [run.matrix.elements]; borrowed.
using RunSpans = std::vector<absl::Span<float>>;

// The part of the model that a rank's rule has, and what it computes with; borrowed but for the
// runs. Runs are in manifest order.
struct RuleShard {
  const Layout* layout = nullptr;
  std::vector<ShardRun> runs;
  Backend* backend = nullptr;
  Device* device = nullptr;
  // Of a rule that takes local steps; nullptr with the others.
  DeltaBackend* deltas = nullptr;
  InnerBackend* inner = nullptr;
  Orthogonalizer* orthogonalizer = nullptr;
  // For what the ranks of the node do together; nullptr: this one is alone.
  RankExchange* exchange = nullptr;
  // What the ranks have, where each has a part of its own; nullptr: every rank has everything.
  const ShardPlan* shards = nullptr;
};

// What is pending of consecutive blocks: of each of the rule's block arrays the bytes of these
// blocks, in the host's memory.
using BlockBytes = std::vector<std::string>;

// What a worker has sent of a round whose result it does not know yet: enough to take it back when
// it counts, and to send the same bytes again.
struct PendingUpdate {
  RoundId round;
  int k = 0;                         // kept_per_block of its round
  std::vector<BlockBytes> segments;  // [segments]
};

// A block array of one rank: run after run, block after block.
struct BlockArray {
  absl::Span<const char> bytes;
  int64_t block_bytes = 0;
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  // Takes the gradient of the round's step `index`, of norm `norm` over the whole model, which is
  // finite. A rule that takes local steps moves `copy`, at which the gradient was taken; the others
  // have one step, index 0, and borrow the gradient until Compress.
  virtual absl::Status TakeGradient(const v1::StepParameters& step, int index, double norm,
                                    const RunSpans& gradient, const RunSpans& copy) = 0;
  // Of a rule that takes local steps: whether what they did is finite. All ranks are asked before
  // Compress, which makes an update at all of them or, with Abandon, at none.
  virtual absl::StatusOr<bool> IsFinite(const v1::StepParameters& /*step*/,
                                        const RunSpans& /*parameters*/, const RunSpans& /*copy*/) {
    return true;
  }
  // Makes an update of what was taken, which stays pending. With local steps: `parameters` are
  // where the copy began.
  virtual absl::Status Compress(const v1::StepParameters& step, const RunSpans& parameters,
                                const RunSpans& copy) = 0;
  // Instead of Compress: nothing is pending, and what the local steps left behind is forgotten.
  virtual absl::Status Abandon() { return absl::OkStatus(); }
  // As a worker starts, with nothing taken and nothing pending. FailedPrecondition: a rule without
  // local steps.
  virtual absl::Status Forget() {
    return absl::FailedPreconditionError("only a rule of local steps forgets its state");
  }
  // What is pending is of this round, whose record has this worker as members[member].
  virtual absl::Status Feedback(const CommittedRound& round, const DecodedRound& decoded,
                                int member) = 0;
  // With overlap = 1: where the next gradient is taken while the result of what is pending is
  // awaited.
  virtual absl::Status Lookahead(float eta, const RunSpans& parameters, const RunSpans& out) = 0;

  // What a later process goes on with. Elements were given to the rule, in the device's memory,
  // [element_arrays]; whoever gave them saves and restores them.
  virtual absl::Span<const RunSpans> elements() const = 0;
  // In the order of UpdateRuleKind::block_bytes; of the last Compress or RestorePending.
  virtual std::vector<BlockArray> pending() const = 0;
  // Takes its blocks out of what is pending of the whole model, which UpdateRuleKind::check has
  // passed.
  virtual absl::Status RestorePending(const PendingUpdate& pending) = 0;
  // Local steps that the worker has taken since its state began.
  virtual uint64_t local_steps() const { return 0; }
  virtual void RestoreLocalSteps(uint64_t /*steps*/) {}
  // For people, of this rank; nothing: the rule has none.
  virtual std::optional<DeltaSums> sums() const { return std::nullopt; }
};

// What is known of a rule before there is one: what its state needs, and what its payloads are.
struct UpdateRuleKind {
  // A round has several steps, on a copy of the parameters, and what they did is sent.
  bool takes_local_steps = false;
  // Norm that what its local steps did is scaled down to, over the whole model; 0: none.
  double delta_clip = 0;
  // Tensors that such a step needs whole at one rank, [tensors]; empty: none.
  std::vector<bool> needs_whole = {};
  // Of deltas: whose blocks it sends as their DCT, as Open has it (v1.DeltaParameters.as_dct).
  std::string as_dct = "";
  // Arrays f32 [elements of the model] that it keeps. Zeros are where a worker starts.
  int element_arrays;
  // Of each array of what is pending, the bytes of a block.
  std::vector<int64_t> (*block_bytes)(int k);
  // The same over all arrays.
  int64_t PendingBytes(int k) const {
    const std::vector<int64_t> bytes = block_bytes(k);
    return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
  }
  // InvalidArgument: what the rule cannot have left in a segment, whatever its checksums say.
  absl::Status (*check)(int k, const BlockBytes& segment);
  // The payload of a segment.
  std::string (*encode)(const PayloadIdentity& identity, int k, const BlockBytes& segment);
  // `elements`: [element_arrays], of each a span a run; their memory outlives the rule.
  std::function<std::unique_ptr<UpdateRule>(RuleShard shard, std::vector<RunSpans> elements)> make;
};

// Momentum of the gradient; the signs of its K strongest frequencies a block (sign_momentum.h).
extern const UpdateRuleKind kSignMomentum;

// What local steps of an ordinary optimizer did; the K largest values of its blocks (delta_rule.h).
// `config` is that of a run of deltas; `model` has the tensors of `layout`, which is borrowed.
UpdateRuleKind LocalDeltas(const v1::RunConfig& config, const Layout* layout,
                           const Architecture& model);

// Who takes the local steps: the rule, with the run's inner optimizer, or who calls it, with any.
enum class LocalStepsBy { kRule, kCaller };

// The same where it is known which tensors Muon steps [tensors] (MuonTensorsOf). kCaller: the rule
// keeps the error buffer only, TakeGradient counts a step that was taken and looks at no span, and
// Abandon and Forget leave the inner optimizer to the caller.
UpdateRuleKind LocalDeltas(const v1::RunConfig& config, const Layout* layout,
                           std::vector<bool> by_muon, LocalStepsBy taken_by);

// The rule of a run. As above.
UpdateRuleKind RuleOf(const v1::RunConfig& config, const Layout* layout, const Architecture& model);

}  // namespace distro::worker
