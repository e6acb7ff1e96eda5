#include "worker/model/model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/model/gradient.h"
#include "worker/model/llama.h"
#include "worker/model/torch.h"

namespace distro::worker {
namespace {

using Shapes = std::vector<std::vector<int64_t>>;

at::Tensor View(absl::Span<const float> values, const std::vector<int64_t>& shape) {
  return at::from_blob(const_cast<float*>(values.data()), shape, at::kFloat);
}

// Views, one a tensor; nobody writes through them.
std::vector<at::Tensor> Views(const TensorBuffer& buffer, const Shapes& shapes) {
  std::vector<at::Tensor> views;
  for (int i = 0; i < buffer.tensors(); ++i) views.push_back(View(buffer.tensor(i), shapes[i]));
  return views;
}

// i64 [sequences, length]
at::Tensor Tokens(const TokenBatch& batch) {
  const int64_t length = static_cast<int64_t>(batch.tokens.size()) / batch.sequences;
  return at::from_blob(const_cast<int32_t*>(batch.tokens.data()), {batch.sequences, length},
                       at::kInt)
      .to(at::kLong);
}

Batch LabelledBatch(const LlamaConfig& config, const TokenBatch& tokens) {
  const at::Tensor all = Tokens(tokens);
  const int64_t positions = all.size(1) - 1;
  Batch batch{.tokens = all.narrow(1, 0, positions),
              .labels = all.narrow(1, 1, positions),
              .rotation_cos = {},
              .rotation_sin = {}};
  AddLlamaRotation(config, static_cast<int>(positions), &batch);
  return batch;
}

Batch UnlabelledBatch(const LlamaConfig& config, const TokenBatch& tokens) {
  Batch batch{.tokens = Tokens(tokens), .labels = {}, .rotation_cos = {}, .rotation_sin = {}};
  AddLlamaRotation(config, static_cast<int>(batch.tokens.size(1)), &batch);
  return batch;
}

}  // namespace

void SetTorchThreads(int threads) { at::set_num_threads(threads); }

absl::StatusOr<std::unique_ptr<Model>> Model::Create(const LlamaConfig& config,
                                                     const Layout& layout) {
  DISTRO_ASSIGN_OR_RETURN(const Manifest expected, Manifest::Create(LlamaTensors(config)));
  DISTRO_RETURN_IF_ERROR(CheckSameTensors(expected, layout.manifest()));
  Shapes shapes;
  std::vector<int64_t> elements;
  for (const TensorSpec& tensor : layout.manifest().tensors()) shapes.push_back(tensor.shape);
  for (const TensorLayout& tensor : layout.tensors()) elements.push_back(tensor.matrix.elements);
  return std::unique_ptr<Model>(new Model(config, std::move(elements), std::move(shapes),
                                          LlamaUnits(config, layout.manifest())));
}

Model::Model(const LlamaConfig& config, std::vector<int64_t> elements, Shapes shapes,
             std::vector<std::unique_ptr<Unit>> units)
    : config_(config),
      elements_(std::move(elements)),
      shapes_(std::move(shapes)),
      units_(std::move(units)) {}

Model::~Model() = default;

absl::Status Model::CheckBatch(const TokenBatch& batch, int64_t labels) const {
  const int64_t tokens = static_cast<int64_t>(batch.tokens.size());
  if (batch.sequences < 1 || tokens % batch.sequences != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(tokens, " tokens are not ", batch.sequences, " sequences of one length"));
  }
  const int64_t positions = tokens / batch.sequences - labels;
  if (positions < 1 || positions > config_.max_positions) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a sequence has ", positions, " positions; the model takes 1 to ", config_.max_positions));
  }
  for (int64_t i = 0; i < tokens; ++i) {
    if (batch.tokens[i] < 0 || batch.tokens[i] >= config_.vocab_size) {
      return absl::InvalidArgumentError(absl::StrCat("token ", i, " of the batch is ",
                                                     batch.tokens[i], "; the vocabulary has ",
                                                     config_.vocab_size));
    }
  }
  return absl::OkStatus();
}

absl::Status Model::CheckBuffer(const TensorBuffer& buffer) const {
  bool same = buffer.tensors() == static_cast<int>(elements_.size());
  for (int i = 0; same && i < buffer.tensors(); ++i) {
    same = static_cast<int64_t>(buffer.tensor(i).size()) == elements_[i];
  }
  return same ? absl::OkStatus()
              : absl::InvalidArgumentError("a buffer has another layout than the model");
}

absl::StatusOr<double> Model::Loss(const TokenBatch& batch, const TensorBuffer& parameters) const {
  DISTRO_RETURN_IF_ERROR(CheckBatch(batch, /*labels=*/1));
  DISTRO_RETURN_IF_ERROR(CheckBuffer(parameters));
  return CatchTorch("loss", [&]() -> absl::StatusOr<double> {
    return Forward(units_, Views(parameters, shapes_), LabelledBatch(config_, batch))
        .item<double>();
  });
}

absl::StatusOr<double> Model::LossAndGradient(const TokenBatch& batch,
                                              const TensorBuffer& parameters,
                                              Accumulation accumulation,
                                              TensorBuffer* gradient) const {
  DISTRO_RETURN_IF_ERROR(CheckBatch(batch, /*labels=*/1));
  DISTRO_RETURN_IF_ERROR(CheckBuffer(parameters));
  DISTRO_RETURN_IF_ERROR(CheckBuffer(*gradient));
  const GradientSink sink = [&](int tensor, const at::Tensor& part) {
    at::Tensor sum = View(gradient->tensor(tensor), shapes_[tensor]);
    accumulation == Accumulation::kStore ? sum.copy_(part) : sum.add_(part);
  };
  return CatchTorch("gradient", [&]() -> absl::StatusOr<double> {
    return worker::LossAndGradient(units_, Views(parameters, shapes_),
                                   LabelledBatch(config_, batch), sink);
  });
}

absl::StatusOr<std::vector<float>> Model::Logits(const TokenBatch& batch,
                                                 const TensorBuffer& parameters) const {
  DISTRO_RETURN_IF_ERROR(CheckBatch(batch, /*labels=*/0));
  DISTRO_RETURN_IF_ERROR(CheckBuffer(parameters));
  return CatchTorch("logits", [&]() -> absl::StatusOr<std::vector<float>> {
    const at::Tensor logits =
        Forward(units_, Views(parameters, shapes_), UnlabelledBatch(config_, batch)).contiguous();
    const float* values = logits.const_data_ptr<float>();
    return std::vector<float>(values, values + logits.numel());
  });
}

}  // namespace distro::worker
