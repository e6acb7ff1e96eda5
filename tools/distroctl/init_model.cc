#include "tools/distroctl/init_model.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/output_path.h"
#include "common/base/process/host_memory.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/model/architecture.h"
#include "common/model/checkpoint/hf_folder.h"
#include "common/model/checkpoint/stored_tensors.h"
#include "common/model/init_weights.h"
#include "common/model/layout/finite.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"
#include "common/model/listed_tensors.h"
#include "common/model/tensor_manifest.h"

namespace distro::tools {
namespace {

constexpr uint64_t kMaxConfigBytes = 1 << 20;

// The contents of the files to write.
struct Initial {
  std::string config_json;
  Manifest manifest;
  std::function<absl::Status(const Layout&, TensorBuffer*)> fill;
  std::string origin;  // "seed 1", "from weights.safetensors"
  Companions companions = {};
};

absl::Status CheckFlags(const InitModelOptions& options) {
  if (options.out.empty()) return absl::InvalidArgumentError("--out: is required, a new folder");
  const bool tensors = !options.from_safetensors.empty();
  const bool manifest = !options.from_manifest.empty();
  if (tensors && manifest) {
    return absl::InvalidArgumentError(
        "--from-safetensors, --from-manifest: give one of them: the tensors, or their names");
  }
  if (!tensors && !manifest) {
    if (options.config.empty()) {
      return absl::InvalidArgumentError(
          "--config: is required, a config.json; or give --from-safetensors or --from-manifest for "
          "a model that distro-worker does not have");
    }
    if (options.outside.has_value()) {
      return absl::InvalidArgumentError(
          "--outside: goes with --from-safetensors or --from-manifest: distro-worker knows the "
          "embedding and the head of its own models; leave it out");
    }
  }
  if (Exists(options.out + "/config.json")) {
    return absl::AlreadyExistsError(
        absl::StrCat(options.out, ": holds a checkpoint already; choose another folder"));
  }
  return Annotate(TryOutputFolder(options.out), "--out");
}

absl::StatusOr<Initial> OfArchitecture(const InitModelOptions& options) {
  DISTRO_ASSIGN_OR_RETURN(const std::string json, ReadTextFile(options.config, kMaxConfigBytes));
  const absl::StatusOr<std::shared_ptr<const Architecture>> model = ParseModelConfig(json);
  if (!model.ok()) {
    return WithMessage(
        model.status(),
        absl::StrCat(options.config, ": ", model.status().message(),
                     " (for any other model give --from-safetensors or --from-manifest)"));
  }
  DISTRO_ASSIGN_OR_RETURN(Manifest manifest, Manifest::Create((*model)->Tensors()));
  return Initial{.config_json = (*model)->ConfigJson(),
                 .manifest = std::move(manifest),
                 .fill = [model = *model, seed = options.seed](
                             const Layout& layout,
                             TensorBuffer* out) { return InitWeights(*model, layout, seed, out); },
                 .origin = absl::StrCat("seed ", options.seed)};
}

// The model's config.json: that of --config, or of the folder with the tensors, or empty.
absl::StatusOr<std::string> ReadConfig(const InitModelOptions& options) {
  if (!options.config.empty()) return ReadTextFile(options.config, kMaxConfigBytes);
  const std::string beside = options.from_safetensors + "/config.json";
  if (!options.from_safetensors.empty() && Exists(beside))
    return ReadTextFile(beside, kMaxConfigBytes);
  return std::string("{}");
}

absl::StatusOr<Initial> OfTensors(const std::string& path, const std::string& config_json) {
  DISTRO_ASSIGN_OR_RETURN(StoredTensors opened, OpenStoredTensors(path, TiesHead(config_json)));
  Companions companions;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    DISTRO_ASSIGN_OR_RETURN(companions, ReadCompanions(path));
  }
  const auto stored = std::make_shared<const StoredTensors>(std::move(opened));
  return Initial{.config_json = {},
                 .manifest = stored->manifest(),
                 .fill = [stored](const Layout& layout,
                                  TensorBuffer* out) { return stored->ReadInto(layout, out); },
                 .origin = absl::StrCat("from ", path),
                 .companions = std::move(companions)};
}

absl::StatusOr<Initial> OfManifest(const std::string& path, uint64_t seed) {
  DISTRO_ASSIGN_OR_RETURN(const std::string json, ReadTextFile(path, kMaxTensorManifestBytes));
  absl::StatusOr<TensorManifest> parsed = ParseTensorManifest(json);
  if (!parsed.ok()) return Annotate(parsed.status(), path);
  const auto tensors = std::make_shared<const TensorManifest>(*std::move(parsed));
  return Initial{.config_json = {},
                 .manifest = tensors->manifest,
                 .fill =
                     [tensors, seed](const Layout& /*layout*/, TensorBuffer* out) {
                       InitTensors(*tensors, seed, out);
                       return absl::OkStatus();
                     },
                 .origin = absl::StrCat("seed ", seed)};
}

// For a model whose architecture is unknown here: the caller lists the outside matrices.
absl::StatusOr<Initial> OfAnyModel(const InitModelOptions& options, int segment_blocks) {
  DISTRO_ASSIGN_OR_RETURN(std::string config_json, ReadConfig(options));
  DISTRO_ASSIGN_OR_RETURN(Initial initial, options.from_manifest.empty()
                                               ? OfTensors(options.from_safetensors, config_json)
                                               : OfManifest(options.from_manifest, options.seed));
  initial.config_json = std::move(config_json);
  if (options.outside.has_value()) {
    DISTRO_ASSIGN_OR_RETURN(initial.config_json,
                            WithListedOutside(initial.config_json, *options.outside));
  }
  DISTRO_ASSIGN_OR_RETURN(const Layout layout, Layout::Create(initial.manifest, segment_blocks));
  const auto inside = ListedTensorsInside(layout, initial.config_json);
  if (inside.ok()) return initial;
  return WithMessage(
      inside.status(),
      absl::StrCat(inside.status().message(),
                   "; --outside NAME,NAME sets it, --outside= where there are none"));
}

// The kernel may grant memory that it does not have and then kill the process.
absl::Status CheckMemory(const Layout& layout) {
  const int64_t needed = layout.elements() * int64_t{sizeof(float)};
  const int64_t memory = HostMemoryBytes();
  if (needed <= memory) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the model's ", layout.elements(), " parameters take ", needed,
                   " bytes as float32; the memory of this machine is ", memory,
                   " bytes: run init-model on a larger one"));
}

}  // namespace

absl::StatusOr<Report> InitModel(const InitModelOptions& options) {
  DISTRO_RETURN_IF_ERROR(CheckFlags(options));
  const bool known = options.from_safetensors.empty() && options.from_manifest.empty();
  DISTRO_ASSIGN_OR_RETURN(Initial initial, known ? OfArchitecture(options)
                                                 : OfAnyModel(options, kDefaultSegmentBlocks));
  DISTRO_ASSIGN_OR_RETURN(const Layout layout,
                          Layout::Create(std::move(initial.manifest), kDefaultSegmentBlocks));
  DISTRO_RETURN_IF_ERROR(CheckMemory(layout));
  TensorBuffer weights(layout);
  DISTRO_RETURN_IF_ERROR(initial.fill(layout, &weights));
  DISTRO_RETURN_IF_ERROR(Annotate(CheckFinite(layout, weights), options.from_safetensors));
  DISTRO_RETURN_IF_ERROR(
      WriteCheckpointFolder(options.out, initial.config_json, layout, weights, initial.companions));
  const size_t tensors = layout.manifest().tensors().size();
  Report report{
      .text = absl::StrCat("wrote ", options.out, ": ", layout.elements(), " parameters in ",
                           tensors, " tensors, ", initial.origin,
                           known ? "" : "; its run.json says \"workers\": \"python\""),
      .json = {{"folder", options.out}, {"parameters", layout.elements()}, {"tensors", tensors}}};
  if (options.from_safetensors.empty()) report.json["seed"] = options.seed;
  return report;
}

Command InitModelCommand(const Console* console) {
  const auto options = std::make_shared<InitModelOptions>();
  const auto outside = [options](absl::string_view text) {
    std::vector<std::string> names = options->outside.value_or(std::vector<std::string>());
    for (const absl::string_view name : absl::StrSplit(text, ',', absl::SkipEmpty()))
      names.emplace_back(name);
    options->outside = std::move(names);
    return absl::OkStatus();
  };
  return {
      .name = "init-model",
      .summary = "Writes a run's initial folder, with random weights or those of a file.",
      .flags = {{.name = "config",
                 .value = &options->config,
                 .help = "config.json of the model, Hugging Face layout. Required without the next "
                         "two; with one of them it is only copied beside the tensors.",
                 .takes = Takes::kFile},
                {.name = "from-safetensors",
                 .value = &options->from_safetensors,
                 .help = "Tensors of a model for Python workers: a safetensors file, or a folder.",
                 .takes = Takes::kFile},
                {.name = "from-manifest",
                 .value = &options->from_manifest,
                 .help = "Names, shapes and initialisation of the tensors of a model for Python "
                         "workers, JSON (docs/checkpoints.md).",
                 .takes = Takes::kFile},
                {.name = "outside",
                 .value = ParsedText{outside, ""},
                 .help = "For a model for Python workers: the matrices that are embedding or head, "
                         "separated by commas. Default: those that config.json lists."},
                {.name = "out",
                 .value = &options->out,
                 .help = "Folder to write. Required.",
                 .takes = Takes::kFolder},
                {.name = "seed", .value = &options->seed, .help = "Seed of the weights."}},
      .help =
          R"(Writes config.json and model.safetensors, for `distroctl run create --model`. Does not change a folder that
contains a checkpoint. A checkpoint of a model that distro-worker supports can be used directly.

Examples:
  distroctl init-model --config examples/demo/config.json --seed 1 --out initial
  distroctl init-model --from-safetensors gpt.safetensors --outside wte.weight,wpe.weight --out initial
  distroctl init-model --from-manifest tensors.json --outside wte.weight,wpe.weight --seed 1 --out initial)",
      .run = [options, console]() -> absl::StatusOr<int> {
        return console->Show(InitModel(*options));
      }};
}

}  // namespace distro::tools
