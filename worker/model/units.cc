#include "worker/model/units.h"

#include "absl/strings/str_cat.h"
#include "worker/model/decoder/decoder_units.h"

namespace distro::worker {
namespace {

struct Maker {
  absl::string_view model_type;
  std::vector<std::unique_ptr<Unit>> (*units)(const Architecture&, const Manifest&);
  std::vector<at::Tensor> (*tables)(const Architecture&, int positions);
};

// Every architecture of common/model/architecture.cc.
constexpr Maker kArchitectures[] = {
    {"llama", &DecoderUnits, &DecoderTables},
};

const Maker* Find(const Architecture& model) {
  for (const Maker& architecture : kArchitectures) {
    if (architecture.model_type == model.model_type()) return &architecture;
  }
  return nullptr;
}

}  // namespace

std::vector<absl::string_view> TypesWithUnits() {
  std::vector<absl::string_view> types;
  for (const Maker& architecture : kArchitectures) types.push_back(architecture.model_type);
  return types;
}

absl::StatusOr<std::vector<std::unique_ptr<Unit>>> MakeUnits(const Architecture& model,
                                                             const Manifest& manifest) {
  const Maker* architecture = Find(model);
  if (architecture == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("model_type \"", model.model_type(), "\": its arithmetic is not built"));
  }
  return architecture->units(model, manifest);
}

absl::Status CheckBatch(const Architecture& model, const TokenBatch& batch, int64_t labels) {
  const int64_t tokens = static_cast<int64_t>(batch.tokens.size());
  if (batch.sequences < 1 || tokens % batch.sequences != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(tokens, " tokens are not ", batch.sequences, " sequences of one length"));
  }
  const int64_t positions = tokens / batch.sequences - labels;
  if (positions < 1 || positions > model.sizes().max_positions) {
    return absl::InvalidArgumentError(absl::StrCat("a sequence has ", positions,
                                                   " positions; the model takes 1 to ",
                                                   model.sizes().max_positions));
  }
  for (int64_t i = 0; i < tokens; ++i) {
    if (batch.tokens[i] < 0 || batch.tokens[i] >= model.sizes().vocab_size) {
      return absl::InvalidArgumentError(absl::StrCat("token ", i, " of the batch is ",
                                                     batch.tokens[i], "; the vocabulary has ",
                                                     model.sizes().vocab_size));
    }
  }
  return absl::OkStatus();
}

std::vector<at::Tensor> MakeTables(const Architecture& model, int positions) {
  return Find(model)->tables(model, positions);
}

}  // namespace distro::worker
