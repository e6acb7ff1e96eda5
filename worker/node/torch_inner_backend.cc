#include "worker/node/torch_inner_backend.h"

#include "worker/torch/float_tensor.h"

namespace distro::worker {
namespace {

class TorchInnerBackend final : public InnerBackend {
 public:
  explicit TorchInnerBackend(at::Device device) : device_(device) {}

  absl::Status AdamW(const AdamWStep& step, absl::Span<float> gradient, absl::Span<float> first,
                     absl::Span<float> second, absl::Span<float> x) override {
    return Do("AdamW", [&] {
      at::Tensor g = Of(gradient);
      if (step.gradient_scale != 1) g.mul_(step.gradient_scale);
      const at::Tensor count = at::full({}, static_cast<double>(step.count), g.options());
      at::_fused_adamw_({Of(x)}, {g}, {Of(first)}, {Of(second)}, {}, {count}, double{step.rate},
                        step.beta1, step.beta2, step.weight_decay, step.epsilon,
                        /*amsgrad=*/false, /*maximize=*/false);
    });
  }

  absl::Status MakeDirection(float mu, float gradient_scale, absl::Span<const float> gradient,
                             absl::Span<float> buffer, absl::Span<float> direction) override {
    return Do("Muon's buffer", [&] {
      const at::Tensor to = Of(direction), momentum = Of(buffer);
      to.copy_(Of(gradient)).mul_(gradient_scale);
      momentum.mul_(mu).add_(to);
      to.add_(momentum, mu);
    });
  }

  absl::Status MoveAlong(const MuonMove& move, absl::Span<const float> direction,
                         absl::Span<float> x) override {
    return Do("Muon's step", [&] {
      Of(x)
          .mul_(1 - double{move.rate} * move.weight_decay)
          .add_(Of(direction), -double{move.rate} * move.scale);
    });
  }

  absl::Status Subtract(absl::Span<const float> a, absl::Span<const float> b,
                        absl::Span<float> out) override {
    return Do("sum of steps", [&] { Of(out).copy_(Of(a)).sub_(Of(b)); });
  }

  absl::Status ScaleFrom(float scale, absl::Span<const float> from, absl::Span<float> to) override {
    return Do("scale steps", [&] { Of(to).sub_(Of(from)).mul_(scale).add_(Of(from)); });
  }

 private:
  at::Tensor Of(absl::Span<const float> floats) const { return FloatTensor(floats, device_); }

  template <typename Body>
  static absl::Status Do(absl::string_view what, Body&& body) {
    return CatchTorch(what, [&] {
      const at::NoGradGuard no_grad;
      body();
      return absl::OkStatus();
    });
  }

  const at::Device device_;
};

}  // namespace

std::unique_ptr<InnerBackend> MakeTorchInnerBackend(at::Device device) {
  return std::make_unique<TorchInnerBackend>(device);
}

}  // namespace distro::worker
