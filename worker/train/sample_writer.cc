#include "worker/train/sample_writer.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "worker/model/generate.h"

namespace distro::worker {
namespace {

// The values of `distro-worker generate`, so that the same parameters give the same text.
constexpr double kTemperature = 0.8;
constexpr uint64_t kSeed = 0;
constexpr int kMaxSampleTokens = 10'000;

}  // namespace

absl::Status SampleOptions::Validate() const {
  if (tokens < 1 || tokens > kMaxSampleTokens) {
    return absl::InvalidArgumentError(absl::StrCat("--sample_tokens: ", tokens, " is outside 1..",
                                                   kMaxSampleTokens, ": training waits for each"));
  }
  if (prompt.empty() && !tokenizer_command.empty()) {
    return absl::InvalidArgumentError(
        "--tokenizer_command: has nothing to encode without --sample_prompt: give both");
  }
  return absl::OkStatus();
}

absl::StatusOr<SampleWriter> SampleWriter::Create(const SampleOptions& options, Dependencies deps) {
  DISTRO_ASSIGN_OR_RETURN(Tokenizer tokenizer,
                          Tokenizer::Create(options.tokenizer_command, deps.vocab_size));
  DISTRO_ASSIGN_OR_RETURN(std::vector<int32_t> prompt, tokenizer.Encode(options.prompt));
  std::unique_ptr<LineFile> lines;
  if (!deps.file.empty()) {
    DISTRO_ASSIGN_OR_RETURN(lines, LineFile::Open(deps.file, kMaxSampleFileBytes));
  }
  return SampleWriter(options, std::move(tokenizer), std::move(prompt), std::move(deps),
                      std::move(lines));
}

bool SampleWriter::IsDue(uint64_t round, uint64_t rounds) const {
  if (last_ == round) return false;
  if (round >= rounds) return true;
  return options_.interval_rounds > 0 && round % options_.interval_rounds == 0;
}

void SampleWriter::Observe(uint64_t next_round, uint64_t rounds,
                           absl::FunctionRef<absl::Status()> goes_on) {
  if (!IsDue(next_round, rounds)) return;
  last_ = next_round;
  const absl::StatusOr<std::string> text = Sample(goes_on);
  if (!goes_on().ok()) return;
  if (!text.ok()) {
    deps_.log->Warning("sample not made", {{"round", next_round}, {"status", text.status()}});
    return;
  }
  deps_.log->Info("sample", {{"round", next_round}, {"text", *text}});
  const absl::Status written = Append(next_round, *text);
  if (!written.ok())
    deps_.log->Warning("sample not written", {{"round", next_round}, {"status", written}});
}

absl::StatusOr<std::string> SampleWriter::Sample(absl::FunctionRef<absl::Status()> goes_on) const {
  const auto next = [&](absl::Span<const int32_t> tokens) -> absl::StatusOr<std::vector<float>> {
    DISTRO_RETURN_IF_ERROR(goes_on());
    return deps_.node->NextLogits(tokens);
  };
  DISTRO_ASSIGN_OR_RETURN(
      const std::vector<int32_t> added,
      Generate(next, deps_.positions, prompt_,
               {.count = options_.tokens, .temperature = kTemperature, .seed = kSeed}));
  std::vector<int32_t> all = prompt_;
  all.insert(all.end(), added.begin(), added.end());
  return tokenizer_.Decode(all);
}

absl::Status SampleWriter::Append(uint64_t round, const std::string& text) {
  if (lines_ == nullptr) return absl::OkStatus();
  return lines_->Append(nlohmann::ordered_json{{"round", round}, {"text", text}}.dump());
}

}  // namespace distro::worker
