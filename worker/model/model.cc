#include "worker/model/model.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/model/model_tensors.h"
#include "worker/model/batch_maker.h"
#include "worker/model/gradient.h"
#include "worker/model/units.h"
#include "worker/torch/float_tensor.h"
#include "worker/torch/torch.h"

namespace distro::worker {
namespace {

using Shapes = std::vector<std::vector<int64_t>>;

at::Tensor View(absl::Span<const float> values, const std::vector<int64_t>& shape) {
  return at::from_blob(const_cast<float*>(values.data()), shape, at::kFloat);
}

// Hooks for units on whole buffers: nothing is gathered, gradients are written in place.
class BufferHooks final : public UnitHooks {
 public:
  BufferHooks(Units units, const Shapes& shapes, const TensorBuffer& parameters)
      : units_(units), shapes_(shapes), parameters_(parameters) {}
  BufferHooks(Units units, const Shapes& shapes, const TensorBuffer& parameters,
              Accumulation accumulation, TensorBuffer* gradient)
      : units_(units),
        shapes_(shapes),
        parameters_(parameters),
        accumulation_(accumulation),
        gradient_(gradient) {}

  absl::StatusOr<std::vector<at::Tensor>> Acquire(int unit) override {
    std::vector<at::Tensor> views;  // nobody writes through them
    for (const int tensor : units_[unit]->tensors()) {
      views.push_back(View(parameters_.tensor(tensor), shapes_[tensor]));
    }
    return views;
  }

  absl::Status Release(int) override { return absl::OkStatus(); }

  absl::Status ReceiveGradients(int, std::vector<TensorGradient> gradients) override {
    for (const auto& [tensor, part] : gradients) {
      at::Tensor sum = View(gradient_->tensor(tensor), shapes_[tensor]);
      accumulation_ == Accumulation::kStore ? sum.copy_(part) : sum.add_(part);
    }
    return absl::OkStatus();
  }

 private:
  const Units units_;
  const Shapes& shapes_;
  const TensorBuffer& parameters_;
  const Accumulation accumulation_ = Accumulation::kStore;
  TensorBuffer* const gradient_ = nullptr;
};

}  // namespace

void SetTorchThreads(int threads) { at::set_num_threads(threads); }

absl::StatusOr<std::unique_ptr<Model>> Model::Create(
    std::shared_ptr<const Architecture> architecture, const Layout& layout) {
  DISTRO_RETURN_IF_ERROR(CheckModelTensors(*architecture, layout.manifest()));
  Shapes shapes;
  std::vector<int64_t> elements;
  for (const TensorSpec& tensor : layout.manifest().tensors()) shapes.push_back(tensor.shape);
  for (const TensorLayout& tensor : layout.tensors()) elements.push_back(tensor.matrix.elements);
  DISTRO_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Unit>> units,
                          MakeUnits(*architecture, layout.manifest()));
  return std::unique_ptr<Model>(
      new Model(std::move(architecture), std::move(elements), std::move(shapes), std::move(units)));
}

Model::Model(std::shared_ptr<const Architecture> architecture, std::vector<int64_t> elements,
             Shapes shapes, std::vector<std::unique_ptr<Unit>> units)
    : architecture_(std::move(architecture)),
      elements_(std::move(elements)),
      shapes_(std::move(shapes)),
      units_(std::move(units)) {}

Model::~Model() = default;

absl::Status Model::CheckBuffer(const TensorBuffer& buffer) const {
  bool same = buffer.tensors() == static_cast<int>(elements_.size());
  for (int i = 0; same && i < buffer.tensors(); ++i) {
    same = static_cast<int64_t>(buffer.tensor(i).size()) == elements_[i];
  }
  return same ? absl::OkStatus()
              : absl::InvalidArgumentError("a buffer has another layout than the model");
}

absl::StatusOr<double> Model::Loss(const TokenBatch& batch, const TensorBuffer& parameters) const {
  DISTRO_RETURN_IF_ERROR(CheckBatch(*architecture_, batch, /*labels=*/1));
  DISTRO_RETURN_IF_ERROR(CheckBuffer(parameters));
  return CatchTorch("loss", [&]() -> absl::StatusOr<double> {
    BufferHooks hooks(units_, shapes_, parameters);
    DISTRO_ASSIGN_OR_RETURN(
        const at::Tensor loss,
        Forward(units_, BatchMaker(architecture_.get(), {}).Labelled(batch), hooks));
    return loss.item<double>();
  });
}

absl::StatusOr<double> Model::LossAndGradient(const TokenBatch& batch,
                                              const TensorBuffer& parameters,
                                              Accumulation accumulation,
                                              TensorBuffer* gradient) const {
  DISTRO_RETURN_IF_ERROR(CheckBatch(*architecture_, batch, /*labels=*/1));
  DISTRO_RETURN_IF_ERROR(CheckBuffer(parameters));
  DISTRO_RETURN_IF_ERROR(CheckBuffer(*gradient));
  return CatchTorch("gradient", [&]() -> absl::StatusOr<double> {
    BufferHooks hooks(units_, shapes_, parameters, accumulation, gradient);
    return worker::LossAndGradient(units_, BatchMaker(architecture_.get(), {}).Labelled(batch),
                                   /*checkpoint_every=*/0, hooks);
  });
}

absl::StatusOr<std::vector<float>> Model::Logits(const TokenBatch& batch,
                                                 const TensorBuffer& parameters) const {
  DISTRO_RETURN_IF_ERROR(CheckBatch(*architecture_, batch, /*labels=*/0));
  DISTRO_RETURN_IF_ERROR(CheckBuffer(parameters));
  return CatchTorch("logits", [&]() -> absl::StatusOr<std::vector<float>> {
    BufferHooks hooks(units_, shapes_, parameters);
    DISTRO_ASSIGN_OR_RETURN(
        const at::Tensor logits,
        Forward(units_, BatchMaker(architecture_.get(), {}).Unlabelled(batch), hooks));
    return FloatsOf(logits);
  });
}

absl::StatusOr<std::vector<float>> Model::NextLogits(absl::Span<const int32_t> tokens,
                                                     const TensorBuffer& parameters) const {
  const TokenBatch batch{.tokens = tokens, .sequences = 1};
  DISTRO_RETURN_IF_ERROR(CheckBatch(*architecture_, batch, /*labels=*/0));
  DISTRO_RETURN_IF_ERROR(CheckBuffer(parameters));
  return CatchTorch("logits", [&]() -> absl::StatusOr<std::vector<float>> {
    BufferHooks hooks(units_, shapes_, parameters);
    DISTRO_ASSIGN_OR_RETURN(
        const at::Tensor logits,
        Forward(units_, BatchMaker(architecture_.get(), {}).Next(batch), hooks));
    return FloatsOf(logits);
  });
}

}  // namespace distro::worker
