#include "worker/model/units.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/model/decoder/decoder.h"
#include "worker/model/decoder/decoder_units.h"

namespace distro::worker {
namespace {

struct Family {
  std::vector<absl::string_view> (*types)();
  std::vector<std::unique_ptr<Unit>> (*units)(const Architecture&, const Manifest&);
  std::vector<at::Tensor> (*tables)(const Architecture&, int positions);
};

// Every architecture of common/model/architecture.cc.
constexpr Family kFamilies[] = {
    {&DecoderTypes, &DecoderUnits, &DecoderTables},
};

const Family* Find(const Architecture& model) {
  for (const Family& family : kFamilies) {
    if (absl::c_linear_search(family.types(), model.model_type())) return &family;
  }
  return nullptr;
}

}  // namespace

std::vector<absl::string_view> TypesWithUnits() {
  std::vector<absl::string_view> types;
  for (const Family& family : kFamilies) {
    for (const absl::string_view type : family.types()) types.push_back(type);
  }
  return types;
}

absl::StatusOr<std::vector<std::unique_ptr<Unit>>> MakeUnits(const Architecture& model,
                                                             const Manifest& manifest) {
  const Family* family = Find(model);
  if (family == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("model_type \"", model.model_type(), "\": its arithmetic is not built"));
  }
  return family->units(model, manifest);
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
