#include "worker/python/module_workload.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/model/architecture.h"
#include "common/model/checkpoint/module_description.h"
#include "common/model/layout/tensor_differences.h"
#include "common/run/run_config.h"

namespace distro::worker {
namespace {

// For a run of which nothing tells the names of its tensors.
std::string SizesText(const v1::JoinResponse& run, const Manifest& module) {
  int64_t parameters = 0;
  for (const TensorSpec& tensor : module.tensors()) {
    int64_t elements = 1;
    for (const int64_t dimension : tensor.shape) elements *= dimension;
    parameters += elements;
  }
  return absl::StrCat("the model has ", module.tensors().size(), " tensors, ",
                      module.tensors()[0].name, " the first, with ", parameters,
                      " parameters; the run's, of which nothing tells the names, has at most ",
                      run.snapshot().size_bytes() / sizeof(float),
                      ": compare the names with those in a checkpoint of the run");
}

// The run's tensors with their names, if anything tells them.
absl::StatusOr<Manifest> TensorsOf(const v1::JoinResponse& run, const Companions& companions) {
  const std::string description = ModuleDescription(companions);
  if (!description.empty()) return TrainedTensors(description);
  DISTRO_ASSIGN_OR_RETURN(const auto known, ParseModelConfig(run.model_config_json()));
  return Manifest::Create(known->Tensors());
}

}  // namespace

void ModuleWorkload::Describe(v1::JoinRequest* request) const {
  request->set_data_fingerprint(options_.data_fingerprint);
  request->set_tokenizer(options_.tokenizer);
}

absl::Status ModuleWorkload::CheckTensors(const v1::JoinResponse& run,
                                          const Companions& companions) const {
  if (HasTensorsOf(run, module_->manifest())) return absl::OkStatus();
  std::string differs = SizesText(run, module_->manifest());
  if (const auto known = TensorsOf(run, companions); known.ok()) {
    if (const TensorDifferences found = CompareTensors(*known, module_->manifest()); !found.empty())
      differs = found.Text();
  }
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, "other_model",
      absl::StrCat("the model has other tensors to train than the run: ", differs));
}

absl::Status ModuleWorkload::Build(const v1::JoinResponse& run, const Companions& companions) {
  const v1::RunConfig& config = run.config();
  DISTRO_RETURN_IF_ERROR(CheckInvitedRun(options_.run_name, config));
  DISTRO_RETURN_IF_ERROR(CheckKeysAreKnown(config));
  if (config.data() == v1::DATA_LOCAL) {
    return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "other_data",
                           "the run is of local data, which only distro-worker trains on");
  }
  // The aggregator compares the tokenizer if one is named. A token file may not name its tokenizer;
  // a program can.
  if (config.has_tokenizer_sha256() && options_.tokenizer.empty()) {
    return ErrorWithReason(
        absl::StatusCode::kFailedPrecondition, "other_data",
        absl::StrCat("tokenizer: the run's data is of the tokenizer ", config.tokenizer_sha256(),
                     ", and this program named none: give connect(tokenizer=...) the tokenizer's "
                     "file, its SHA-256 or \"bytes\""));
  }
  DISTRO_RETURN_IF_ERROR(CheckTensors(run, companions));
  DISTRO_ASSIGN_OR_RETURN(Layout layout,
                          Layout::Create(module_->manifest(), config.segment_blocks()));
  layout_ = std::make_unique<Layout>(std::move(layout));
  DISTRO_ASSIGN_OR_RETURN(UpdateRuleKind rule,
                          RuleOfModule(config, layout_.get(), run.model_config_json()));
  learner_ = std::make_unique<ModuleLearner>(layout_.get(), module_, std::move(rule), program_,
                                             options_.threads);
  objective_ = std::make_unique<ModuleObjective>(learner_.get(), program_, phases_);
  return absl::OkStatus();
}

}  // namespace distro::worker
