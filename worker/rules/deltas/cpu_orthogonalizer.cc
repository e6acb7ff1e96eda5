#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/newton_schulz.h"
#include "worker/rules/deltas/orthogonalizer.h"

namespace distro::worker {
namespace {

class CpuOrthogonalizer final : public Orthogonalizer {
 public:
  absl::StatusOr<SharedFloats> Allocate(int64_t elements) override {
    auto floats = std::make_shared<std::vector<float>>(elements);
    return SharedFloats(absl::MakeSpan(*floats), floats);
  }
  absl::Status NewtonSchulz(int64_t rows, int64_t cols, int iterations,
                            absl::Span<const absl::Span<float>> us) override {
    for (const absl::Span<float> u : us) distro::NewtonSchulz(kernels_, rows, cols, iterations, u);
    return absl::OkStatus();
  }
  int64_t batch_elements() const override { return 0; }

 private:
  const MatrixKernels& kernels_ = *SupportedVectorKernels().back().matrix;
};

}  // namespace

std::unique_ptr<Orthogonalizer> MakeCpuOrthogonalizer() {
  return std::make_unique<CpuOrthogonalizer>();
}

}  // namespace distro::worker
