#include <cmath>

#include "worker/rules/deltas/inner_backend.h"

namespace distro::worker {
namespace {

class CpuInnerBackend final : public InnerBackend {
 public:
  absl::Status AdamW(const AdamWStep& step, absl::Span<float> gradient, absl::Span<float> first,
                     absl::Span<float> second, absl::Span<float> x) override {
    const auto count = static_cast<double>(step.count);
    const auto correction1 = static_cast<float>(1 / (1 - std::pow(double{step.beta1}, count)));
    const auto correction2 = static_cast<float>(1 / (1 - std::pow(double{step.beta2}, count)));
    const float decay = step.rate * step.weight_decay;
    const float rate = step.rate, scale = step.gradient_scale, epsilon = step.epsilon;
    const float beta1 = step.beta1, beta2 = step.beta2;
    for (size_t i = 0; i < x.size(); ++i) {
      const float g = scale * gradient[i];
      first[i] = beta1 * first[i] + (1 - beta1) * g;
      second[i] = beta2 * second[i] + (1 - beta2) * g * g;
      const float direction =
          first[i] * correction1 / (std::sqrt(second[i] * correction2) + epsilon);
      x[i] -= decay * x[i] + rate * direction;
    }
    return absl::OkStatus();
  }

  absl::Status MakeDirection(float mu, float gradient_scale, absl::Span<const float> gradient,
                             absl::Span<float> buffer, absl::Span<float> direction) override {
    for (size_t i = 0; i < direction.size(); ++i) {
      const float g = gradient_scale * gradient[i];
      buffer[i] = mu * buffer[i] + g;
      direction[i] = g + mu * buffer[i];
    }
    return absl::OkStatus();
  }

  absl::Status MoveAlong(const MuonMove& move, absl::Span<const float> direction,
                         absl::Span<float> x) override {
    for (size_t i = 0; i < x.size(); ++i)
      x[i] -= move.rate * (move.scale * direction[i] + move.weight_decay * x[i]);
    return absl::OkStatus();
  }

  absl::Status Subtract(absl::Span<const float> a, absl::Span<const float> b,
                        absl::Span<float> out) override {
    for (size_t i = 0; i < out.size(); ++i) out[i] = a[i] - b[i];
    return absl::OkStatus();
  }

  absl::Status ScaleFrom(float scale, absl::Span<const float> from, absl::Span<float> to) override {
    for (size_t i = 0; i < to.size(); ++i) to[i] = from[i] + scale * (to[i] - from[i]);
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<InnerBackend> MakeCpuInnerBackend() { return std::make_unique<CpuInnerBackend>(); }

}  // namespace distro::worker
