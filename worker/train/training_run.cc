#include "worker/train/training_run.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/version.h"
#include "common/checkpoint/snapshot.h"
#include "common/model_config/llama_config.h"

namespace distro::worker {

absl::StatusOr<std::unique_ptr<TrainingRun>> TrainingRun::Begin(const TrainerOptions& options,
                                                                const std::string& scratch_dir,
                                                                const Parts& parts,
                                                                Trainer::Observer observer) {
  auto run = absl::WrapUnique(new TrainingRun());
  DISTRO_RETURN_IF_ERROR(run->Join(options, parts));
  DISTRO_RETURN_IF_ERROR(run->BuildModel(*parts.tokens));
  DISTRO_RETURN_IF_ERROR(run->LoadSnapshot(scratch_dir, parts.exchange));
  run->optimizer_ = std::make_unique<Optimizer>(run->layout_.get(), run->backend_.get());
  DISTRO_ASSIGN_OR_RETURN(run->trainer_, Trainer::Create(options,
                                                         {.run = &run->run_,
                                                          .model = run->model_.get(),
                                                          .samples = run->samples_.get(),
                                                          .replica = run->replica_.get(),
                                                          .optimizer = run->optimizer_.get(),
                                                          .exchange = parts.exchange,
                                                          .phases = parts.phases,
                                                          .log = parts.log},
                                                         std::move(observer)));
  return run;
}

absl::Status TrainingRun::Join(const TrainerOptions& options, const Parts& parts) {
  v1::JoinRequest request;
  request.mutable_worker()->set_name(options.worker);
  request.mutable_worker()->set_incarnation(options.incarnation);
  request.set_version(std::string(Version()));
  request.set_data_fingerprint(parts.tokens->Fingerprint());
  DISTRO_ASSIGN_OR_RETURN(run_, parts.exchange->Join(request));
  parts.log->Info("joined", {{"worker", options.worker},
                             {"run", run_.run_id()},
                             {"epoch", run_.epoch()},
                             {"snapshot_round", run_.snapshot().round()},
                             {"head_round", run_.head_round()}});
  return absl::OkStatus();
}

absl::Status TrainingRun::BuildModel(const TokenSource& tokens) {
  DISTRO_ASSIGN_OR_RETURN(const LlamaConfig config, ParseLlamaConfig(run_.model_config_json()));
  if (run_.config().sequence_length() > static_cast<uint32_t>(config.max_positions)) {
    return absl::InvalidArgumentError(
        absl::StrCat("sequence_length: ", run_.config().sequence_length(),
                     " exceeds the model's max_position_embeddings, ", config.max_positions));
  }
  DISTRO_RETURN_IF_ERROR(tokens.ValidateVocabulary(config.vocab_size));
  DISTRO_ASSIGN_OR_RETURN(Manifest manifest, Manifest::Create(LlamaTensors(config)));
  const auto& hash = manifest.hash();
  if (run_.manifest_hash() !=
      absl::string_view(reinterpret_cast<const char*>(hash.data()), hash.size())) {
    return absl::InvalidArgumentError(
        "the run's manifest hash is not that of its config.json: its checkpoint holds "
        "other tensors than this model has");
  }
  DISTRO_ASSIGN_OR_RETURN(Layout layout,
                          Layout::Create(std::move(manifest), run_.config().segment_blocks()));
  layout_ = std::make_unique<Layout>(std::move(layout));
  DISTRO_ASSIGN_OR_RETURN(model_, Model::Create(config, *layout_));
  DISTRO_ASSIGN_OR_RETURN(SampleReader samples, SampleReader::Create(&tokens, run_.config()));
  samples_ = std::make_unique<SampleReader>(std::move(samples));
  backend_ = MakeCpuBackend();
  return absl::OkStatus();
}

absl::Status TrainingRun::LoadSnapshot(const std::string& scratch_dir, Exchange* exchange) {
  const std::string path = absl::StrCat(scratch_dir, "/snapshot.safetensors");
  const auto remove = absl::MakeCleanup([&path] {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  });
  DISTRO_RETURN_IF_ERROR(exchange->DownloadSnapshot(run_.snapshot(), path));
  TensorBuffer parameters(*layout_);
  DISTRO_RETURN_IF_ERROR(Annotate(ReadSnapshot(path, *layout_, &parameters), "snapshot"));
  replica_ =
      std::make_unique<Replica>(layout_.get(), backend_.get(), std::move(parameters),
                                RoundId(run_.snapshot().round()), run_.snapshot().log_hash());
  const uint64_t hash = replica_->StateHash();
  if (hash == run_.snapshot().state_hash()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "the snapshot of round ", run_.snapshot().round(), " has state hash ", ToHex(hash),
      ", the aggregator announced ", ToHex(run_.snapshot().state_hash())));
}

}  // namespace distro::worker
