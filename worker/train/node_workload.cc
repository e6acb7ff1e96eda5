#include "worker/train/node_workload.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/process/host_memory.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/model/architecture.h"
#include "common/run/run_config.h"
#include "worker/train/micro_batch.h"

namespace distro::worker {

NodeWorkload::~NodeWorkload() {
  if (node_ == nullptr || !node_->has_stuck_rank()) return;
  static_cast<void>(layout_.release());
  static_cast<void>(model_.release());
}

void NodeWorkload::Describe(v1::JoinRequest* request) const {
  request->set_data_fingerprint(deps_.data_fingerprint);
  request->set_tokenizer(deps_.tokens->tokenizer());
  if (deps_.public_tokens != nullptr) request->set_own_tokens(deps_.tokens->tokens());
}

absl::Status NodeWorkload::CheckRun(const v1::RunConfig& config) const {
  DISTRO_RETURN_IF_ERROR(CheckInvitedRun(deps_.run_name, config));
  DISTRO_RETURN_IF_ERROR(CheckKeysAreKnown(config));
  if (config.workers() != v1::WORKERS_PYTHON) return absl::OkStatus();
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "other_run",
                         "the run's model is a PyTorch module (\"workers\": \"python\"): train it "
                         "with the Python package distro-train (docs/python.md)");
}

absl::Status NodeWorkload::Build(const v1::JoinResponse& run, const Companions& /*companions*/) {
  DISTRO_RETURN_IF_ERROR(CheckRun(run.config()));
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<const Architecture> architecture,
                          ParseModelConfig(run.model_config_json()));
  const ModelSizes& sizes = architecture->sizes();
  DISTRO_RETURN_IF_ERROR(CheckSequenceLength(run.config().sequence_length(), sizes));
  DISTRO_RETURN_IF_ERROR(OpenSamples(run.config(), sizes.vocab_size));
  DISTRO_ASSIGN_OR_RETURN(Manifest manifest, Manifest::Create(architecture->Tensors()));
  if (!HasTensorsOf(run, manifest)) {
    return absl::InvalidArgumentError(
        absl::StrCat("config.json of run ", run.run_id(),
                     ": this version makes other tensors of it than the run has: use the "
                     "aggregator's version"));
  }
  DISTRO_ASSIGN_OR_RETURN(Layout layout,
                          Layout::Create(std::move(manifest), run.config().segment_blocks()));
  layout_ = std::make_unique<Layout>(std::move(layout));
  DISTRO_ASSIGN_OR_RETURN(model_, Model::Create(architecture, *layout_));
  rule_ = RuleOf(run.config(), layout_.get(), *architecture);
  DISTRO_RETURN_IF_ERROR(MakeNode(run.config()));
  objective_ = std::make_unique<NodeObjective>(
      micro_batch_samples_, options_.hold_back, run.config().evaluation_samples(),
      NodeObjective::Dependencies{.node = node_.get(),
                                  .samples = samples_.get(),
                                  .public_samples = public_samples_.get(),
                                  .phases = deps_.phases});
  return absl::OkStatus();
}

absl::Status NodeWorkload::MakeNode(const v1::RunConfig& config) {
  const auto samples = static_cast<int>(config.samples_per_worker());
  const auto sequence_length = static_cast<int>(config.sequence_length());
  const auto make = [&](int micro_batch_samples) {
    return Node::Create(options_.node, {.layout = layout_.get(),
                                        .model = model_.get(),
                                        .rule = &rule_,
                                        .copy = config.overlap() == 1 || rule_.takes_local_steps,
                                        .micro_batch_samples = micro_batch_samples,
                                        .sequence_length = sequence_length,
                                        .kept_per_block = static_cast<int>(config.kept_per_block()),
                                        .log = deps_.log});
  };
  if (options_.micro_batch_samples != kAutoMicroBatch) {
    micro_batch_samples_ =
        options_.micro_batch_samples > 0 ? options_.micro_batch_samples : samples;
    DISTRO_ASSIGN_OR_RETURN(node_, make(micro_batch_samples_));
    return absl::OkStatus();
  }
  DISTRO_ASSIGN_OR_RETURN(const int ranks, Node::CheckDevices(options_.node));
  const int64_t memory_bytes = Node::HostMemoryFor(options_.node, ranks, ResidentBytes());
  const auto try_step = [&](Node* node, int micro_batch_samples) {
    return TakeTrialGradient(node, micro_batch_samples, sequence_length, memory_bytes);
  };
  DISTRO_ASSIGN_OR_RETURN(
      NodeOfMicroBatch found,
      FindLargestMicroBatch(MicroBatchCandidates(samples, ranks), make, try_step, deps_.log));
  node_ = std::move(found.node);
  micro_batch_samples_ = found.samples;
  return absl::OkStatus();
}

absl::Status NodeWorkload::OpenSamples(const v1::RunConfig& config, int vocab_size) {
  const bool local = deps_.public_tokens != nullptr;
  if (local != (config.data() == v1::DATA_LOCAL)) {
    return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "other_data",
                           local ? "the run is of shared data: leave --public_data out"
                                 : "the run is of local data: give --public_data");
  }
  DISTRO_RETURN_IF_ERROR(deps_.tokens->ValidateVocabulary(vocab_size));
  DISTRO_ASSIGN_OR_RETURN(SampleReader samples,
                          SampleReader::Create(deps_.tokens, config, options_.worker));
  samples_ = std::make_unique<SampleReader>(std::move(samples));
  if (!local) return absl::OkStatus();
  DISTRO_RETURN_IF_ERROR(
      Annotate(deps_.public_tokens->ValidateVocabulary(vocab_size), "public data"));
  DISTRO_ASSIGN_OR_RETURN(SampleReader held_out,
                          SampleReader::OfHeldOut(deps_.public_tokens, config));
  public_samples_ = std::make_unique<SampleReader>(std::move(held_out));
  return absl::OkStatus();
}

}  // namespace distro::worker
