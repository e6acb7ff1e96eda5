// Our side of the comparison with transformers (transformers_checkpoints_test.py): opens a
// checkpoint, or makes one with random weights, trains it with plain gradient descent, writes it
// and its logits.
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/process/command_line.h"
#include "common/base/status_macros.h"
#include "common/model/architecture.h"
#include "common/model/checkpoint/hf_folder.h"
#include "common/model/init_weights.h"
#include "worker/model/model.h"

namespace distro::worker {
namespace {

struct Options {
  std::string checkpoint;
  std::string init_config;
  std::string tokens;
  int sequences = 1;
  int train = 0;
  double learning_rate = 0.1;
  std::string write_checkpoint;
  std::string write_logits;
};

std::vector<Flag> Flags(Options* o) {
  return {
      {.name = "checkpoint",
       .value = &o->checkpoint,
       .help = "Checkpoint folder to open.",
       .takes = Takes::kFolder},
      {.name = "init_config",
       .value = &o->init_config,
       .help = "config.json to make random weights for, instead.",
       .takes = Takes::kFile},
      {.name = "tokens", .value = &o->tokens, .help = "File of i32 tokens.", .takes = Takes::kFile},
      {.name = "sequences", .value = &o->sequences, .help = "How many sequences the tokens are."},
      {.name = "train",
       .value = &o->train,
       .help = "Steps of gradient descent on the tokens; prints the loss before each."},
      {.name = "learning_rate", .value = &o->learning_rate, .help = "Of gradient descent."},
      {.name = "write_checkpoint",
       .value = &o->write_checkpoint,
       .help = "Folder to write the model to, after training.",
       .takes = Takes::kFolder},
      {.name = "write_logits",
       .value = &o->write_logits,
       .help = "File for the f32 logits of the tokens, after training.",
       .takes = Takes::kFile}};
}

struct State {
  std::unique_ptr<Layout> layout;
  std::unique_ptr<TensorBuffer> parameters;
  std::unique_ptr<Model> model;
};

absl::StatusOr<State> MakeState(std::shared_ptr<const Architecture> model,
                                const Manifest& manifest) {
  State state;
  DISTRO_ASSIGN_OR_RETURN(Layout layout, Layout::Create(manifest, kDefaultSegmentBlocks));
  state.layout = std::make_unique<Layout>(std::move(layout));
  state.parameters = std::make_unique<TensorBuffer>(*state.layout);
  DISTRO_ASSIGN_OR_RETURN(state.model, Model::Create(std::move(model), *state.layout));
  return state;
}

absl::StatusOr<State> OpenFolder(const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(const CheckpointFolder folder, OpenCheckpointFolder(path));
  DISTRO_ASSIGN_OR_RETURN(std::shared_ptr<const Architecture> model,
                          ParseModelConfig(folder.config_json()));
  DISTRO_ASSIGN_OR_RETURN(State state, MakeState(std::move(model), folder.manifest()));
  DISTRO_RETURN_IF_ERROR(folder.ReadInto(*state.layout, state.parameters.get()));
  return state;
}

absl::StatusOr<State> Random(const std::string& config_path) {
  DISTRO_ASSIGN_OR_RETURN(const std::string json, ReadFile(config_path));
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<const Architecture> model, ParseModelConfig(json));
  DISTRO_ASSIGN_OR_RETURN(const Manifest manifest, Manifest::Create(model->Tensors()));
  DISTRO_ASSIGN_OR_RETURN(State state, MakeState(model, manifest));
  DISTRO_RETURN_IF_ERROR(InitWeights(*model, *state.layout, /*seed=*/1, state.parameters.get()));
  return state;
}

absl::StatusOr<std::vector<int32_t>> ReadTokens(const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  std::vector<int32_t> tokens(bytes.size() / sizeof(int32_t));
  std::memcpy(tokens.data(), bytes.data(), tokens.size() * sizeof(int32_t));
  return tokens;
}

absl::Status Train(const TokenBatch& batch, int steps, float learning_rate, State* state) {
  TensorBuffer gradient(*state->layout);
  for (int step = 0; step < steps; ++step) {
    DISTRO_ASSIGN_OR_RETURN(
        const double loss,
        state->model->LossAndGradient(batch, *state->parameters, Accumulation::kStore, &gradient));
    std::cout << absl::StrCat(loss, "\n");
    for (int i = 0; i < gradient.tensors(); ++i) {
      const absl::Span<float> parameter = state->parameters->tensor(i);
      for (size_t j = 0; j < parameter.size(); ++j) {
        parameter[j] -= learning_rate * gradient.tensor(i)[j];
      }
    }
  }
  return absl::OkStatus();
}

absl::Status WriteLogits(const TokenBatch& batch, const State& state, const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(const std::vector<float> logits,
                          state.model->Logits(batch, *state.parameters));
  return WriteFileAtomically(path, absl::string_view(reinterpret_cast<const char*>(logits.data()),
                                                     logits.size() * sizeof(float)));
}

absl::StatusOr<int> Main(const Options& options) {
  SetTorchThreads(1);
  const std::string checkpoint = options.checkpoint;
  DISTRO_ASSIGN_OR_RETURN(
      State state, checkpoint.empty() ? Random(options.init_config) : OpenFolder(checkpoint));
  DISTRO_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, ReadTokens(options.tokens));
  const TokenBatch batch{.tokens = tokens, .sequences = options.sequences};
  DISTRO_RETURN_IF_ERROR(
      Train(batch, options.train, static_cast<float>(options.learning_rate), &state));
  if (const std::string folder = options.write_checkpoint; !folder.empty()) {
    DISTRO_RETURN_IF_ERROR(WriteCheckpointFolder(folder, state.model->architecture().ConfigJson(),
                                                 *state.layout, *state.parameters));
  }
  if (const std::string path = options.write_logits; !path.empty()) {
    DISTRO_RETURN_IF_ERROR(WriteLogits(batch, state, path));
  }
  return 0;
}

}  // namespace
}  // namespace distro::worker

int main(int argc, char** argv) {
  distro::worker::Options options;
  return distro::RunProgram(
      {.name = "model_check",
       .summary = "opens or makes a checkpoint, trains it, and writes it and its logits.",
       .commands = {{.flags = distro::worker::Flags(&options),
                     .help = R"(Called by transformers_checkpoints_test.py.)",
                     .run = [&options] { return distro::worker::Main(options); }}}},
      argc, argv);
}
