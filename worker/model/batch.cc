#include "worker/model/batch.h"

#include "absl/strings/str_cat.h"
#include "worker/model/llama.h"

namespace distro::worker {
namespace {

// i64 [sequences, length]
at::Tensor Tokens(const TokenBatch& batch, at::Device device) {
  const int64_t length = static_cast<int64_t>(batch.tokens.size()) / batch.sequences;
  return at::from_blob(const_cast<int32_t*>(batch.tokens.data()), {batch.sequences, length},
                       at::kInt)
      .to(device, at::kLong);
}

void AddRotation(const LlamaConfig& config, at::Device device, Batch* batch) {
  AddLlamaRotation(config, static_cast<int>(batch->tokens.size(1)), batch);
  batch->rotation_cos = batch->rotation_cos.to(device);
  batch->rotation_sin = batch->rotation_sin.to(device);
}

}  // namespace

absl::Status CheckBatch(const LlamaConfig& config, const TokenBatch& batch, int64_t labels) {
  const int64_t tokens = static_cast<int64_t>(batch.tokens.size());
  if (batch.sequences < 1 || tokens % batch.sequences != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(tokens, " tokens are not ", batch.sequences, " sequences of one length"));
  }
  const int64_t positions = tokens / batch.sequences - labels;
  if (positions < 1 || positions > config.max_positions) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a sequence has ", positions, " positions; the model takes 1 to ", config.max_positions));
  }
  for (int64_t i = 0; i < tokens; ++i) {
    if (batch.tokens[i] < 0 || batch.tokens[i] >= config.vocab_size) {
      return absl::InvalidArgumentError(absl::StrCat("token ", i, " of the batch is ",
                                                     batch.tokens[i], "; the vocabulary has ",
                                                     config.vocab_size));
    }
  }
  return absl::OkStatus();
}

Batch LabelledBatch(const LlamaConfig& config, const TokenBatch& tokens, at::Device device) {
  const at::Tensor all = Tokens(tokens, device);
  const int64_t positions = all.size(1) - 1;
  Batch batch{.tokens = all.narrow(1, 0, positions),
              .labels = all.narrow(1, 1, positions),
              .rotation_cos = {},
              .rotation_sin = {}};
  AddRotation(config, device, &batch);
  return batch;
}

Batch UnlabelledBatch(const LlamaConfig& config, const TokenBatch& tokens, at::Device device) {
  Batch batch{
      .tokens = Tokens(tokens, device), .labels = {}, .rotation_cos = {}, .rotation_sin = {}};
  AddRotation(config, device, &batch);
  return batch;
}

}  // namespace distro::worker
