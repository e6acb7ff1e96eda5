#include "worker/train/training_run.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/version.h"
#include "common/model/architecture.h"
#include "worker/fsdp/host_memory.h"
#include "worker/train/micro_batch.h"

namespace distro::worker {

namespace {

// Snapshots that may be replaced by newer ones while they are fetched.
constexpr int kSnapshotAttempts = 5;

bool IsGone(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  return reason == "pruned" || reason == "diverged";
}

absl::string_view HashOf(const Manifest& manifest) {
  const auto& hash = manifest.hash();
  return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingRun>> TrainingRun::Begin(const TrainerOptions& options,
                                                                const std::string& scratch_dir,
                                                                const Parts& parts,
                                                                Trainer::Observer observer) {
  auto run = absl::WrapUnique(new TrainingRun(options, scratch_dir, parts));
  if (parts.state != nullptr) DISTRO_RETURN_IF_ERROR(run->LoadState());
  DISTRO_RETURN_IF_ERROR(run->JoinWithState());
  TrainerOptions chosen = options;
  chosen.micro_batch_samples = run->micro_batch_samples_;
  DISTRO_ASSIGN_OR_RETURN(run->trainer_,
                          Trainer::Create(std::move(chosen),
                                          {.run = &run->run_,
                                           .samples = run->samples_.get(),
                                           .public_samples = run->public_samples_.get(),
                                           .node = run->node_.get(),
                                           .exchange = parts.exchange,
                                           .phases = parts.phases,
                                           .log = parts.log,
                                           .state = parts.state,
                                           .resync = [run = run.get()] { return run->Resync(); }},
                                          std::move(observer)));
  if (run->state_.has_value()) DISTRO_RETURN_IF_ERROR(run->RestoreState());
  return run;
}

TrainingRun::~TrainingRun() {
  if (node_ == nullptr || !node_->has_stuck_rank()) return;
  static_cast<void>(layout_.release());
  static_cast<void>(model_.release());
}

absl::Status TrainingRun::Train() {
  const absl::Status status = trainer_->Run();
  trainer_->SaveState();
  return status;
}

absl::Status TrainingRun::JoinAndLoad(const v1::JoinRequest& request) {
  absl::Status status;
  for (int attempt = 0; attempt < kSnapshotAttempts; ++attempt) {
    DISTRO_RETURN_IF_ERROR(Join(request));
    status = LoadSnapshot();
    if (!IsGone(status)) return status;
    parts_.log->Warning("the snapshot is gone, joining again", {{"status", status}});
  }
  return status;
}

absl::Status TrainingRun::Join(const v1::JoinRequest& asked) {
  v1::JoinRequest request = asked;
  request.mutable_worker()->set_name(options_.worker);
  request.mutable_worker()->set_incarnation(options_.incarnation);
  request.set_version(std::string(Version()));
  const bool local = parts_.public_tokens != nullptr;
  DISTRO_ASSIGN_OR_RETURN(const std::string fingerprint,
                          (local ? parts_.public_tokens : parts_.tokens)->Fingerprint());
  request.set_data_fingerprint(fingerprint);
  if (local) request.set_own_tokens(parts_.tokens->tokens());
  DISTRO_ASSIGN_OR_RETURN(run_, parts_.exchange->Join(request));
  parts_.log->Info("joined", {{"worker", options_.worker},
                              {"run", run_.run_id()},
                              {"epoch", run_.epoch()},
                              {"snapshot_round", run_.snapshot().round()},
                              {"head_round", run_.head_round()}});
  if (layout_ == nullptr) return BuildModel();
  if (run_.manifest_hash() == HashOf(layout_->manifest())) return absl::OkStatus();
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "other_run",
                         absl::StrCat("run ", run_.run_id(), " has another manifest now"));
}

absl::Status TrainingRun::Resync() {
  v1::JoinRequest request;
  request.set_run_id(run_.run_id());
  return JoinAndLoad(request);
}

absl::Status TrainingRun::BuildModel() {
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<const Architecture> architecture,
                          ParseModelConfig(run_.model_config_json()));
  const ModelSizes& sizes = architecture->sizes();
  if (run_.config().sequence_length() > static_cast<uint32_t>(sizes.max_positions)) {
    return absl::InvalidArgumentError(
        absl::StrCat("sequence_length: ", run_.config().sequence_length(),
                     " exceeds the model's max_position_embeddings, ", sizes.max_positions));
  }
  DISTRO_RETURN_IF_ERROR(OpenSamples(sizes.vocab_size));
  DISTRO_ASSIGN_OR_RETURN(Manifest manifest, Manifest::Create(architecture->Tensors()));
  if (run_.manifest_hash() != HashOf(manifest)) {
    return absl::InvalidArgumentError(
        "the run's manifest hash is not that of its config.json: its checkpoint holds "
        "other tensors than this model has");
  }
  DISTRO_ASSIGN_OR_RETURN(Layout layout,
                          Layout::Create(std::move(manifest), run_.config().segment_blocks()));
  layout_ = std::make_unique<Layout>(std::move(layout));
  DISTRO_ASSIGN_OR_RETURN(model_, Model::Create(architecture, *layout_));
  rule_ = RuleOf(run_.config(), layout_.get(), *architecture);
  return MakeNode();
}

absl::Status TrainingRun::MakeNode() {
  const v1::RunConfig& config = run_.config();
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
                                        .log = parts_.log});
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
      FindLargestMicroBatch(MicroBatchCandidates(samples, ranks), make, try_step, parts_.log));
  node_ = std::move(found.node);
  micro_batch_samples_ = found.samples;
  return absl::OkStatus();
}

absl::Status TrainingRun::OpenSamples(int vocab_size) {
  const bool local = parts_.public_tokens != nullptr;
  if (local != (run_.config().data() == v1::DATA_LOCAL)) {
    return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "other_data",
                           local ? "the run is of shared data: leave --public_data out"
                                 : "the run is of local data: give --public_data");
  }
  DISTRO_RETURN_IF_ERROR(parts_.tokens->ValidateVocabulary(vocab_size));
  DISTRO_ASSIGN_OR_RETURN(SampleReader samples,
                          SampleReader::Create(parts_.tokens, run_.config(), options_.worker));
  samples_ = std::make_unique<SampleReader>(std::move(samples));
  if (!local) return absl::OkStatus();
  DISTRO_RETURN_IF_ERROR(
      Annotate(parts_.public_tokens->ValidateVocabulary(vocab_size), "public data"));
  DISTRO_ASSIGN_OR_RETURN(SampleReader held_out,
                          SampleReader::OfHeldOut(parts_.public_tokens, run_.config()));
  public_samples_ = std::make_unique<SampleReader>(std::move(held_out));
  return absl::OkStatus();
}

absl::Status TrainingRun::LoadSnapshot() {
  const std::string path = absl::StrCat(scratch_dir_, "/snapshot.safetensors");
  const auto remove = absl::MakeCleanup([&path] {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  });
  DISTRO_RETURN_IF_ERROR(parts_.exchange->DownloadSnapshot(run_.snapshot(), path));
  DISTRO_RETURN_IF_ERROR(Annotate(
      node_->Load(path, RoundId(run_.snapshot().round()), run_.snapshot().log_hash()), "snapshot"));
  const uint64_t hash = node_->StateHash();
  if (hash == run_.snapshot().state_hash()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "the snapshot of round ", run_.snapshot().round(), " has state hash ", ToHex(hash),
      ", the aggregator announced ", ToHex(run_.snapshot().state_hash())));
}

}  // namespace distro::worker
