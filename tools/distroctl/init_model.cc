#include "tools/distroctl/init_model.h"

#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/checkpoint/hf_folder.h"
#include "common/layout/layout.h"
#include "common/layout/tensor_buffer.h"
#include "common/model/architecture.h"
#include "common/model/init_weights.h"

namespace distro::tools {
namespace {

constexpr uint64_t kMaxConfigBytes = 1 << 20;

}  // namespace

absl::StatusOr<Report> InitModel(const InitModelOptions& options) {
  if (options.config.empty())
    return absl::InvalidArgumentError("--config: is required, a config.json");
  if (options.out.empty()) return absl::InvalidArgumentError("--out: is required, a new folder");
  if (std::filesystem::exists(options.out + "/config.json")) {
    return absl::AlreadyExistsError(
        absl::StrCat(options.out, ": holds a checkpoint already; choose another folder"));
  }
  DISTRO_ASSIGN_OR_RETURN(const std::string json, ReadFile(options.config, kMaxConfigBytes));
  const absl::StatusOr<std::shared_ptr<const Architecture>> model = ParseModelConfig(json);
  if (!model.ok()) return Annotate(model.status(), options.config);
  DISTRO_ASSIGN_OR_RETURN(Manifest manifest, Manifest::Create((*model)->Tensors()));
  DISTRO_ASSIGN_OR_RETURN(const Layout layout,
                          Layout::Create(std::move(manifest), kDefaultSegmentBlocks));
  TensorBuffer weights(layout);
  DISTRO_RETURN_IF_ERROR(InitWeights(**model, layout, options.seed, &weights));
  DISTRO_RETURN_IF_ERROR(
      WriteCheckpointFolder(options.out, (*model)->ConfigJson(), layout, weights));
  const size_t tensors = layout.manifest().tensors().size();
  return Report{.text = absl::StrCat("wrote ", options.out, ": ", layout.elements(),
                                     " parameters in ", tensors, " tensors, seed ", options.seed),
                .json = {{"folder", options.out},
                         {"parameters", layout.elements()},
                         {"tensors", tensors},
                         {"seed", options.seed}}};
}

Command InitModelCommand(const Console* console) {
  const auto options = std::make_shared<InitModelOptions>();
  return {
      .name = "init-model",
      .summary = "Writes random initial weights, the same bytes on every machine.",
      .flags = {{.name = "config",
                 .value = &options->config,
                 .help = "config.json of the model, Hugging Face layout. Required.",
                 .takes = Takes::kFile},
                {.name = "out",
                 .value = &options->out,
                 .help = "Folder to write. Required.",
                 .takes = Takes::kFolder},
                {.name = "seed", .value = &options->seed, .help = "Seed of the weights."}},
      .help =
          R"(Writes config.json and model.safetensors, which transformers opens and `distroctl run create --model` takes.
A folder that holds a checkpoint is not touched. A checkpoint that was trained elsewhere serves just as well.

Example:
  distroctl init-model --config examples/demo/config.json --seed 1 --out initial)",
      .run = [options, console]() -> absl::StatusOr<int> {
        return console->Show(InitModel(*options));
      }};
}

}  // namespace distro::tools
