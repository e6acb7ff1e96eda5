#include "worker/python/module_workload.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/model/architecture.h"
#include "common/round/muon_tensors.h"

namespace distro::worker {
namespace {

// For a run whose config.json does not tell the names of its tensors.
std::string SizesText(const v1::JoinResponse& run, const Manifest& module) {
  int64_t parameters = 0;
  for (const TensorSpec& tensor : module.tensors()) {
    int64_t elements = 1;
    for (const int64_t dimension : tensor.shape) elements *= dimension;
    parameters += elements;
  }
  return absl::StrCat("the model has ", module.tensors().size(), " tensors, ",
                      module.tensors()[0].name, " the first, with ", parameters,
                      " parameters; the run's, whose config.json names none, has at most ",
                      run.snapshot().size_bytes() / sizeof(float),
                      ": compare the names with those in a checkpoint of the run");
}

}  // namespace

void ModuleWorkload::Describe(v1::JoinRequest* request) const {
  request->set_data_fingerprint(data_fingerprint_);
  request->set_tokenizer(tokenizer_);
}

absl::Status ModuleWorkload::CheckTensors(const v1::JoinResponse& run) const {
  if (HasTensorsOf(run, module_->manifest())) return absl::OkStatus();
  constexpr absl::string_view kContext =
      "the model has other tensors than the run (names, shapes and requires_grad count; a model "
      "inside torch.compile or DistributedDataParallel has other names: give the one inside)";
  absl::Status differs = absl::InvalidArgumentError(SizesText(run, module_->manifest()));
  if (const auto known = ParseModelConfig(run.model_config_json()); known.ok()) {
    if (const auto manifest = Manifest::Create((*known)->Tensors()); manifest.ok()) {
      const absl::Status found = CheckSameTensors(*manifest, module_->manifest());
      if (!found.ok()) differs = found;
    }
  }
  return Annotate(differs, kContext);
}

absl::Status ModuleWorkload::Build(const v1::JoinResponse& run) {
  const v1::RunConfig& config = run.config();
  if (config.data() == v1::DATA_LOCAL) {
    return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "other_data",
                           "the run is of local data, which only distro-worker trains on");
  }
  // The aggregator compares the tokenizer if one is named. A token file may not name its tokenizer;
  // a program can.
  if (config.has_tokenizer_sha256() && tokenizer_.empty()) {
    return ErrorWithReason(
        absl::StatusCode::kFailedPrecondition, "other_data",
        absl::StrCat("tokenizer: the run's data is of the tokenizer ", config.tokenizer_sha256(),
                     ", and this program named none: give connect(tokenizer=...) the tokenizer's "
                     "file, its SHA-256 or \"bytes\""));
  }
  DISTRO_RETURN_IF_ERROR(CheckTensors(run));
  DISTRO_ASSIGN_OR_RETURN(Layout layout,
                          Layout::Create(module_->manifest(), config.segment_blocks()));
  layout_ = std::make_unique<Layout>(std::move(layout));
  UpdateRuleKind rule = kSignMomentum;
  by_muon_.assign(layout_->tensors().size(), false);
  if (config.method() == v1::METHOD_DELTAS) {
    DISTRO_ASSIGN_OR_RETURN(by_muon_, MuonTensorsOf(config, *layout_, run.model_config_json()));
    rule = LocalDeltas(config, layout_.get(), by_muon_, LocalStepsBy::kCaller);
  }
  learner_ =
      std::make_unique<ModuleLearner>(layout_.get(), module_, std::move(rule), program_, threads_);
  objective_ = std::make_unique<ModuleObjective>(learner_.get(), program_, phases_);
  return absl::OkStatus();
}

}  // namespace distro::worker
