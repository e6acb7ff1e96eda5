#include "worker/commands.h"

#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/mapped_file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/thread_count.h"
#include "common/base/utf8.h"
#include "common/client/diagnosis.h"
#include "common/client/link_bench.h"
#include "common/client/link_report.h"
#include "common/client/options/client_flags.h"
#include "common/model/architecture.h"
#include "common/model/checkpoint/hf_folder.h"
#include "common/model/layout/tensor_buffer.h"
#include "worker/data/sampler.h"
#include "worker/data/text_entropy.h"
#include "worker/data/token_file.h"
#include "worker/data/tokenizer.h"
#include "worker/exit_code.h"
#include "worker/model/generate.h"
#include "worker/model/model.h"
#include "worker/options.h"

namespace distro::worker {

Flag DataFormatFlag(std::string* value) {
  return {.name = "data_format",
          .value = value,
          .help =
              "Format of the files of --data: text, llmc, uint16, uint32, or auto: by name "
              "(docs/data.md).",
          .choices = {"auto", "text", "llmc", "uint16", "uint32"}};
}

Flag TokenizerCommandFlag(std::string* value) {
  return {.name = "tokenizer_command",
          .value = value,
          .help =
              "Turns text into the model's tokens (COMMAND encode) and back (COMMAND decode), "
              "such as 'scripts/distro-data tokenizer tokenizer.json' (docs/data.md). Models "
              "of bytes need none."};
}

namespace {

absl::StatusOr<int> Print(const absl::StatusOr<std::string>& text) {
  DISTRO_RETURN_IF_ERROR(text.status());
  std::cout << *text << std::endl;
  return kExitDone;
}

Command GenerateCommand() {
  const auto options = std::make_shared<GenerateCommandOptions>();
  return {.name = "generate",
          .summary = "Continues a text with a trained checkpoint.",
          .flags = {{.name = "model",
                     .value = &options->model,
                     .help = "Checkpoint folder. Required.",
                     .takes = Takes::kFolder},
                    {.name = "prompt",
                     .value = &options->prompt,
                     .help = "Text to continue. Required."},
                    TokenizerCommandFlag(&options->tokenizer_command),
                    {.name = "tokens", .value = &options->tokens, .help = "Tokens to add."},
                    {.name = "temperature",
                     .value = &options->temperature,
                     .help = "0 takes the most likely token; larger values vary more."},
                    {.name = "seed", .value = &options->seed, .help = "Seed of the draws."},
                    {.name = "threads", .value = &options->threads, .help = "Torch threads."}},
          .help = R"(Examples:
  distro-worker generate --model DIR --prompt TEXT
  distro-worker generate --model DIR --prompt TEXT --tokenizer_command 'scripts/distro-data tokenizer tokenizer.json')",
          .run = [options] { return Print(GenerateText(*options)); }};
}

Command FingerprintCommand() {
  const auto options = std::make_shared<FingerprintOptions>();
  return {.name = "fingerprint",
          .summary =
              "Prints the fingerprint of the tokens, which must be that of all workers of a run.",
          .flags = {{.name = "data",
                     .value = &options->data,
                     .help = "Text (UTF-8), token files, a pattern of them, or the index that "
                             "distro-data wrote (docs/data.md). Required.",
                     .takes = Takes::kFile},
                    DataFormatFlag(&options->data_format)},
          .help = R"(Example:
  distro-worker fingerprint --data FILE)",
          .run = [options] { return Print(DataFingerprint(*options)); }};
}

absl::StatusOr<int> BenchLink(const LinkBenchOptions& options) {
  const absl::StatusOr<LinkMeasurement> measured =
      MeasureLink(options, [](absl::string_view line) { std::cerr << line << "\n"; });
  if (!measured.ok()) return Explain(measured.status(), {.channel = options.channel});
  std::cout << LinkText(*measured) << std::endl;
  return PredictLink(*measured).straggler ? kExitTooSlow : kExitDone;
}

Command BenchLinkCommand() {
  const auto options = std::make_shared<LinkBenchOptions>();
  return {.name = "bench-link",
          .arguments = {{"HOST:PORT", &options->channel.aggregator}},
          .summary =
              "Measures the link with payloads as large as the run's: would this worker be a "
              "straggler?",
          .flags = WithClientFlags({}, &options->channel),
          .help = R"(Ends with exit code 9 if this worker would delay the others.

Example:
  distro-worker bench-link HOST:PORT --ca FILE --token_file FILE)",
          .run = [options] { return BenchLink(*options); }};
}

Command TextFloorCommand() {
  const auto options = std::make_shared<TextFloorOptions>();
  return {.name = "text-floor",
          .summary = "Prints the losses on held-out text that a trained byte model must beat.",
          .flags = {{.name = "data",
                     .value = &options->data,
                     .help = "Text (UTF-8). Required.",
                     .takes = Takes::kFile},
                    {.name = "sequence_length",
                     .value = &options->sequence_length,
                     .help = "As in the run's configuration."},
                    {.name = "held_out_fraction",
                     .value = &options->held_out_fraction,
                     .help = "As in the run's configuration."}},
          .help = R"(Example:
  distro-worker text-floor --data FILE --sequence_length N --held_out_fraction F)",
          .run = [options] { return Print(TextFloorReport(*options)); }};
}

}  // namespace

absl::StatusOr<std::string> GenerateText(const GenerateCommandOptions& options) {
  DISTRO_RETURN_IF_ERROR(CheckThreads("--threads", options.threads));
  if (options.tokens < 0) {
    return absl::InvalidArgumentError(absl::StrCat("--tokens: ", options.tokens, " is below 0"));
  }
  if (!(options.temperature >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--temperature: ", options.temperature, " is below 0"));
  }
  if (options.model.empty())
    return absl::InvalidArgumentError("--model: is required, a checkpoint folder");
  if (options.prompt.empty())
    return absl::InvalidArgumentError("--prompt: is required, the text to continue");
  DISTRO_ASSIGN_OR_RETURN(const CheckpointFolder checkpoint, OpenCheckpointFolder(options.model));
  absl::StatusOr<std::shared_ptr<const Architecture>> parsed =
      ParseModelConfig(checkpoint.config_json());
  if (!parsed.ok()) return Annotate(parsed.status(), options.model);
  std::shared_ptr<const Architecture> architecture = *std::move(parsed);
  DISTRO_ASSIGN_OR_RETURN(
      const Tokenizer tokenizer,
      Tokenizer::Create(options.tokenizer_command, architecture->sizes().vocab_size));
  DISTRO_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, tokenizer.Encode(options.prompt));
  DISTRO_ASSIGN_OR_RETURN(const Layout layout,
                          Layout::Create(checkpoint.manifest(), kDefaultSegmentBlocks));
  const absl::StatusOr<std::unique_ptr<Model>> made =
      Model::Create(std::move(architecture), layout);
  if (!made.ok()) return Annotate(made.status(), options.model);
  const Model& model = **made;
  TensorBuffer parameters(layout);
  DISTRO_RETURN_IF_ERROR(checkpoint.ReadInto(layout, &parameters));
  SetTorchThreads(options.threads);
  DISTRO_ASSIGN_OR_RETURN(
      const std::vector<int32_t> added,
      Generate(
          model, parameters, tokens,
          {.count = options.tokens, .temperature = options.temperature, .seed = options.seed}));
  tokens.insert(tokens.end(), added.begin(), added.end());
  return tokenizer.Decode(tokens);
}

absl::StatusOr<std::string> DataFingerprint(const FingerprintOptions& options) {
  if (options.data.empty()) return absl::InvalidArgumentError("--data: is required, a token file");
  const absl::StatusOr<TokenFormat> format = ParseTokenFormat(options.data_format);
  if (!format.ok()) return Annotate(format.status(), "--data_format");
  const absl::StatusOr<TokenSource> tokens = OpenTokens(options.data, *format);
  if (!tokens.ok()) return Annotate(tokens.status(), "--data");
  const absl::StatusOr<std::string> fingerprint = tokens->Fingerprint();
  if (!fingerprint.ok()) return Annotate(fingerprint.status(), "--data");
  return absl::StrCat(*fingerprint, "  ", tokens->tokens(), " tokens  ", options.data);
}

absl::StatusOr<std::string> TextFloorReport(const TextFloorOptions& options) {
  if (options.data.empty()) return absl::InvalidArgumentError("--data: is required, a text");
  // Opened as tokens, for their checks; a byte of text is a token.
  const absl::StatusOr<TokenSource> tokens =
      TokenSource::OpenFile(options.data, TokenFormat::kText);
  if (!tokens.ok()) return Annotate(tokens.status(), "--data");
  DISTRO_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(options.data));
  const absl::string_view text = WithoutByteOrderMark(file.bytes());
  DISTRO_ASSIGN_OR_RETURN(
      const DataSplit split,
      SplitSamples(tokens->tokens(), options.sequence_length, options.held_out_fraction));
  const int64_t border = split.training_samples * options.sequence_length;
  const int64_t end = border + split.held_out_samples * options.sequence_length + 1;
  DISTRO_ASSIGN_OR_RETURN(
      const TextFloor floor,
      ComputeTextFloor(text.substr(0, border + 1), text.substr(border, end - border)));
  return absl::StrFormat("byte frequencies  %.4f nats a byte\nbyte bigrams      %.4f nats a byte",
                         floor.byte_entropy, floor.bigram_cross_entropy);
}

std::vector<Command> Commands() {
  return {GenerateCommand(), FingerprintCommand(), BenchLinkCommand(), TextFloorCommand()};
}

}  // namespace distro::worker
