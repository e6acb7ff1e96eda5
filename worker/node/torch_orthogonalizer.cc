#include "worker/node/torch_orthogonalizer.h"

#include <limits>

#include "common/base/status_macros.h"
#include "kernels/cpu/newton_schulz.h"
#include "worker/torch/float_tensor.h"

namespace distro::worker {
namespace {

class TorchOrthogonalizer final : public Orthogonalizer {
 public:
  TorchOrthogonalizer(at::Device memory, at::Device compute, at::ScalarType type)
      : memory_(memory), compute_(compute), type_(type) {}

  absl::StatusOr<SharedFloats> Allocate(int64_t elements) override {
    return CatchTorch("directions", [&]() -> absl::StatusOr<SharedFloats> {
      auto tensor = std::make_shared<const at::Tensor>(
          at::empty({elements}, at::TensorOptions().dtype(at::kFloat).device(memory_)));
      auto* const floats = elements > 0 ? tensor->data_ptr<float>() : nullptr;
      return SharedFloats(absl::MakeSpan(floats, elements), std::move(tensor));
    });
  }

  absl::Status NewtonSchulz(int64_t rows, int64_t cols, int iterations,
                            absl::Span<float> u) override {
    return CatchTorch("Newton-Schulz", [&] {
      const at::NoGradGuard no_grad;
      const at::Tensor matrix = FloatTensor(u, memory_).view({rows, cols});
      const bool tall = rows > cols;
      at::Tensor x = Normalized(matrix);
      if (tall) x = x.t();
      for (int i = 0; i < iterations; ++i) {
        const at::Tensor gram = x.mm(x.t());
        const at::Tensor factor = gram.addmm(gram, gram, kNewtonSchulzCubic, kNewtonSchulzQuintic);
        x = x.addmm(factor, x, kNewtonSchulzLinear, 1);
      }
      matrix.copy_((tall ? x.t() : x).to(at::kFloat));  // converted before it travels to the host
      return absl::OkStatus();
    });
  }

 private:
  // The matrix scaled to norm 1, on the computing device; zeros stay zeros.
  at::Tensor Normalized(const at::Tensor& matrix) const {
    const at::Tensor there = matrix.to(compute_);
    return there.div(there.norm().clamp_min(std::numeric_limits<float>::min())).to(type_);
  }

  const at::Device memory_;
  const at::Device compute_;
  const at::ScalarType type_;
};

}  // namespace

std::unique_ptr<Orthogonalizer> MakeTorchOrthogonalizer(at::Device memory, at::Device compute,
                                                        at::ScalarType type) {
  return std::make_unique<TorchOrthogonalizer>(memory, compute, type);
}

}  // namespace distro::worker
