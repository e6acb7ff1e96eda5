#include "worker/fsdp/unit_driver.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/fsdp/gathered_units.h"
#include "worker/fsdp/gradient_reducer.h"
#include "worker/model/gradient.h"
#include "worker/model/units.h"
#include "worker/torch/float_tensor.h"

namespace distro::worker {
namespace {

absl::Status CheckElements(absl::string_view name, const at::Tensor& tensor, int64_t elements) {
  if (tensor.dim() == 1 && tensor.numel() == elements && tensor.is_contiguous() &&
      tensor.scalar_type() == at::kFloat) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the ", name, " are not f32 [", elements, "], contiguous"));
}

}  // namespace

class UnitDriver::Impl final : public UnitHooks {
 public:
  Impl(const FsdpOptions& options, at::Device device, const Dependencies& deps)
      : options_(options),
        deps_(deps),
        batches_(&deps.model->architecture(),
                 {.device = device,
                  .type = options.param_dtype == FloatType::kBf16 ? at::kBFloat16 : at::kFloat,
                  .pins_host_memory = deps.pins_host_memory,
                  .padded_to = deps.padded_to}),
        units_(static_cast<int>(deps.model->units().size())),
        gathered_(options, device, *deps.model, *deps.shards, *deps.whole, deps.communicator,
                  deps.memory),
        reducer_(options, *deps.model, *deps.shards, *deps.whole, deps.communicator, deps.memory) {}

  int64_t Elements(bool sharded) const {
    return sharded ? deps_.shards->shard(deps_.communicator->rank()).elements()
                   : deps_.whole->shard(0).elements();
  }
  int64_t parameter_elements() const { return Elements(ShardsParameters(options_.sharding)); }
  int64_t gradient_elements() const { return Elements(ShardsGradients(options_.sharding)); }

  absl::StatusOr<double> Gradient(const TokenBatch* batch, const at::Tensor& parameters,
                                  Accumulation accumulation, const at::Tensor& gradient) {
    DISTRO_RETURN_IF_ERROR(Check(batch, parameters, /*labels=*/1));
    DISTRO_RETURN_IF_ERROR(CheckElements("gradients", gradient, gradient_elements()));
    const at::NoGradGuard no_grad;
    gathered_.Begin(UnitUses(units_, /*backward=*/true), parameters);
    reducer_.Begin(batch != nullptr, accumulation, gradient);
    double loss = 0;
    if (batch != nullptr) {
      DISTRO_ASSIGN_OR_RETURN(loss, LossAndGradient(deps_.model->units(), batches_.Labelled(*batch),
                                                    options_.checkpoint_every, *this));
    } else {
      DISTRO_RETURN_IF_ERROR(TakePart(/*backward=*/true));
    }
    DISTRO_RETURN_IF_ERROR(reducer_.End());
    return loss;
  }

  absl::Status FinishGradient(const at::Tensor& gradient) {
    DISTRO_RETURN_IF_ERROR(CheckElements("gradients", gradient, gradient_elements()));
    const at::NoGradGuard no_grad;
    return reducer_.FinishStep(gradient);
  }

  absl::StatusOr<double> Loss(const TokenBatch* batch, const at::Tensor& parameters) {
    DISTRO_RETURN_IF_ERROR(Check(batch, parameters, /*labels=*/1));
    const at::NoGradGuard no_grad;
    gathered_.Begin(UnitUses(units_, /*backward=*/false), parameters);
    if (batch == nullptr) {
      DISTRO_RETURN_IF_ERROR(TakePart(/*backward=*/false));
      return 0.0;
    }
    DISTRO_ASSIGN_OR_RETURN(const at::Tensor loss,
                            Forward(deps_.model->units(), batches_.Labelled(*batch), *this));
    return loss.item<double>();
  }

  absl::StatusOr<std::vector<float>> NextLogits(const TokenBatch* batch,
                                                const at::Tensor& parameters) {
    DISTRO_RETURN_IF_ERROR(Check(batch, parameters, /*labels=*/0));
    const at::NoGradGuard no_grad;
    gathered_.Begin(UnitUses(units_, /*backward=*/false), parameters);
    if (batch == nullptr) {
      DISTRO_RETURN_IF_ERROR(TakePart(/*backward=*/false));
      return std::vector<float>();
    }
    DISTRO_ASSIGN_OR_RETURN(const at::Tensor logits,
                            Forward(deps_.model->units(), batches_.Next(*batch), *this));
    return FloatsOf(logits);
  }

  absl::StatusOr<std::vector<at::Tensor>> Acquire(int unit) override {
    return gathered_.Acquire(unit);
  }
  absl::Status Release(int unit) override {
    gathered_.Release(unit);
    return absl::OkStatus();
  }
  absl::Status ReceiveGradients(int unit, std::vector<TensorGradient> gradients) override {
    return reducer_.Take(unit, std::move(gradients));
  }

 private:
  absl::Status Check(const TokenBatch* batch, const at::Tensor& parameters, int labels) const {
    DISTRO_RETURN_IF_ERROR(CheckElements("parameters", parameters, parameter_elements()));
    return batch == nullptr ? absl::OkStatus()
                            : CheckBatch(deps_.model->architecture(), *batch, labels);
  }

  // Takes part in the collective operations of a pass without computing.
  absl::Status TakePart(bool backward) {
    for (int unit = 0; unit < units_; ++unit) {
      DISTRO_RETURN_IF_ERROR(Acquire(unit).status());
      if (!backward || unit + 1 < units_) DISTRO_RETURN_IF_ERROR(Release(unit));
    }
    for (int unit = units_ - 1; backward && unit >= 0; --unit) {
      if (unit + 1 < units_) DISTRO_RETURN_IF_ERROR(Acquire(unit).status());
      DISTRO_RETURN_IF_ERROR(Release(unit));
      DISTRO_RETURN_IF_ERROR(ReceiveGradients(unit, {}));
    }
    return absl::OkStatus();
  }

  const FsdpOptions options_;
  const Dependencies deps_;
  BatchMaker batches_;
  const int units_;
  GatheredUnits gathered_;
  GradientReducer reducer_;
};

UnitDriver::UnitDriver(const FsdpOptions& options, at::Device device, const Dependencies& deps)
    : impl_(std::make_unique<Impl>(options, device, deps)) {}

UnitDriver::~UnitDriver() = default;

int64_t UnitDriver::parameter_elements() const { return impl_->parameter_elements(); }

int64_t UnitDriver::gradient_elements() const { return impl_->gradient_elements(); }

absl::StatusOr<double> UnitDriver::Gradient(const TokenBatch* batch, const at::Tensor& parameters,
                                            Accumulation accumulation, const at::Tensor& gradient) {
  return CatchTorch("gradient",
                    [&] { return impl_->Gradient(batch, parameters, accumulation, gradient); });
}

absl::Status UnitDriver::FinishGradient(const at::Tensor& gradient) {
  return CatchTorch("gradient", [&] { return impl_->FinishGradient(gradient); });
}

absl::StatusOr<double> UnitDriver::Loss(const TokenBatch* batch, const at::Tensor& parameters) {
  return CatchTorch("loss", [&] { return impl_->Loss(batch, parameters); });
}

absl::StatusOr<std::vector<float>> UnitDriver::NextLogits(const TokenBatch* batch,
                                                          const at::Tensor& parameters) {
  return CatchTorch("logits", [&] { return impl_->NextLogits(batch, parameters); });
}

}  // namespace distro::worker
