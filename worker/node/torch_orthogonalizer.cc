#include "worker/node/torch_orthogonalizer.h"

#include <limits>
#include <vector>

#include "common/base/status_macros.h"
#include "kernels/cpu/newton_schulz.h"
#include "worker/plan/matrix_waves.h"
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
                            absl::Span<const absl::Span<float>> us) override {
    return CatchTorch("Newton-Schulz", [&] {
      const at::NoGradGuard no_grad;
      std::vector<at::Tensor> matrices;
      for (const absl::Span<float> u : us)
        matrices.push_back(FloatTensor(u, memory_).view({1, rows, cols}));
      const bool tall = rows > cols;
      at::Tensor x = Normalized(matrices);
      if (tall) x = x.mT();
      for (int i = 0; i < iterations; ++i) {
        const at::Tensor gram = x.bmm(x.mT());
        const at::Tensor factor =
            gram.baddbmm(gram, gram, kNewtonSchulzCubic, kNewtonSchulzQuintic);
        x = x.baddbmm(factor, x, kNewtonSchulzLinear, 1);
      }
      x = (tall ? x.mT() : x).to(at::kFloat);  // converted before it travels to the host
      for (size_t i = 0; i < matrices.size(); ++i)
        matrices[i].copy_(x.narrow(0, static_cast<int64_t>(i), 1));
      return absl::OkStatus();
    });
  }
  int64_t batch_elements() const override { return kGpuBatchElements; }

 private:
  // The matrices scaled to norm 1, as one on the computing device; zeros stay zeros.
  at::Tensor Normalized(const std::vector<at::Tensor>& matrices) const {
    std::vector<at::Tensor> there;
    for (const at::Tensor& matrix : matrices) there.push_back(matrix.to(compute_));
    const at::Tensor all = at::cat(there);
    const at::Tensor norms = all.norm(2, {1, 2}, /*keepdim=*/true);
    return all.div_(norms.clamp_min(std::numeric_limits<float>::min())).to(type_);
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
