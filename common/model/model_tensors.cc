#include "common/model/model_tensors.h"

#include <algorithm>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/layout/tensor_differences.h"

namespace distro {
namespace {

constexpr absl::string_view kHead = "lm_head.weight";

// Parts of names that another library adds around a model.
struct Wrapper {
  absl::string_view part;
  absl::string_view remedy;
};
constexpr Wrapper kWrappers[] = {
    {"lora_", "they are a LoRA adapter's: save the model after merge_and_unload()"},
    {".base_layer.", "they are a LoRA adapter's: save the model after merge_and_unload()"},
    {"_orig_mod.", "\"_orig_mod.\" is of torch.compile: save the module inside (model._orig_mod)"},
    {"_fsdp_wrapped_module.", "they are of FSDP: save its full state dict"},
    {"_forward_module.", "they are of a Lightning or DeepSpeed wrapper: save the module inside"},
    {".qweight", "they are of a quantised model: give weights of F32, BF16 or F16"},
    {".weight_scale", "they are of a quantised model: give weights of F32, BF16 or F16"},
    {".absmax", "they are of a quantised model: give weights of F32, BF16 or F16"},
};

bool IsOnlyHead(const std::vector<TensorSpec>& tensors) {
  return tensors.size() == 1 && tensors[0].name == kHead;
}

// 1 + the highest K of names with ".layers.K."; 0 without such names.
int LayersOf(absl::Span<const TensorSpec> tensors) {
  constexpr char kLayers[] = ".layers.";
  int layers = 0;
  for (const TensorSpec& tensor : tensors) {
    const size_t at = tensor.name.find(kLayers);
    if (at == std::string::npos) continue;
    const std::string rest = tensor.name.substr(at + sizeof(kLayers) - 1);
    int layer = 0;
    if (absl::SimpleAtoi(rest.substr(0, rest.find('.')), &layer) && layer >= 0 && layer < 1 << 20)
      layers = std::max(layers, layer + 1);
  }
  return layers;
}

// A prefix that names have in the weights alone, or lack there. Empty: neither.
std::string PrefixRemedy(const TensorDifferences& found) {
  for (const TensorSpec& stored : found.unexpected) {
    for (const TensorSpec& wanted : found.missing) {
      const absl::string_view have = stored.name, want = wanted.name;
      if (absl::EndsWith(have, absl::StrCat(".", want))) {
        const std::string prefix =
            absl::Utf8SafeCHexEscape(have.substr(0, have.size() - want.size()));
        return absl::StrCat("the stored names begin with \"", prefix,
                            prefix == "module."
                                ? "\", as in DistributedDataParallel: save the module inside "
                                  "(model.module)"
                                : "\": save the model inside, or take this off the names");
      }
      if (absl::EndsWith(want, absl::StrCat(".", have))) {
        return absl::StrCat("the stored names lack \"", want.substr(0, want.size() - have.size()),
                            "\": save the whole model with its head, not the one inside");
      }
    }
  }
  return "";
}

// Whether all of another shape are embedding or head with another number of rows.
bool OnlyRowsOfVocabulary(const TensorDifferences& found, const ModelSizes& sizes) {
  return !found.reshaped.empty() &&
         std::ranges::all_of(found.reshaped, [&](const TensorDifferences::Reshaped& one) {
           const std::vector<int64_t>& want = one.expected.shape;
           return want.size() == 2 && one.shape.size() == 2 && want[0] == sizes.vocab_size &&
                  want[1] == one.shape[1] && one.shape[0] == found.reshaped[0].shape[0];
         });
}

bool IsTransposed(const TensorDifferences::Reshaped& one) {
  const std::vector<int64_t>& want = one.expected.shape;
  return want.size() == 2 && std::ranges::equal(one.shape, std::vector(want.rbegin(), want.rend()));
}

std::string RemedyOfNames(const TensorDifferences& found, const ModelSizes& sizes,
                          const Manifest& weights) {
  for (const Wrapper& wrapper : kWrappers) {
    for (const TensorSpec& tensor : found.unexpected)
      if (absl::StrContains(tensor.name, wrapper.part)) return std::string(wrapper.remedy);
  }
  if (std::string remedy = PrefixRemedy(found); !remedy.empty()) return remedy;
  const int layers = LayersOf(weights.tensors());
  if (layers != 0 && layers != sizes.layers) {
    return absl::StrCat("num_hidden_layers is ", sizes.layers, ", and the weights have ", layers,
                        " layers: set it to ", layers, ", or give the weights of this config.json");
  }
  if (found.unexpected.empty() && IsOnlyHead(found.missing)) {
    return "set tie_word_embeddings to true if the head is the embedding; otherwise save the head, "
           "too";
  }
  if (found.missing.empty() && IsOnlyHead(found.unexpected)) {
    return "tie_word_embeddings is true, and the stored head is not equal to the embedding: set it "
           "to false to train both, or remove the stored head";
  }
  const bool biases = std::ranges::all_of(found.unexpected, [](const TensorSpec& tensor) {
    return absl::EndsWith(tensor.name, ".bias");
  });
  if (!found.unexpected.empty() && biases) {
    return "distro-worker has no biases there: take a checkpoint without them, or a run with "
           "\"workers\": \"python\"";
  }
  return "";
}

std::string Remedy(const TensorDifferences& found, const ModelSizes& sizes,
                   const Manifest& weights) {
  if (std::string remedy = RemedyOfNames(found, sizes, weights); !remedy.empty()) return remedy;
  if (OnlyRowsOfVocabulary(found, sizes)) {
    const int64_t rows = found.reshaped[0].shape[0];
    return absl::StrCat("vocab_size is ", sizes.vocab_size, ", and the weights have ", rows,
                        " rows: set it to ", rows, " if tokens were added or rows padded");
  }
  if (!found.reshaped.empty() && IsTransposed(found.reshaped[0])) {
    return "its dimensions are exchanged: store [outputs, inputs], as torch.nn.Linear does";
  }
  return "config.json and weights are of two models: give both from one save";
}

}  // namespace

absl::Status CheckModelTensors(const Architecture& model, const Manifest& weights) {
  DISTRO_ASSIGN_OR_RETURN(const Manifest expected, Manifest::Create(model.Tensors()));
  const TensorDifferences found = CompareTensors(expected, weights);
  if (found.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "config.json: the model that it describes has other tensors than the weights: ", found.Text(),
      "; ", Remedy(found, model.sizes(), weights)));
}

}  // namespace distro
