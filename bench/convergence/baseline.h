// What DisTrO is compared with: the same model, samples, batch size, schedule and clipping, with
// the gradients of all workers averaged every round (All-Reduce) and one of the usual optimizers.
// One thread computes what the workers would compute at once.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bench/convergence/curve.h"
#include "common/layout/layout.h"
#include "common/layout/tensor_buffer.h"
#include "common/simulation/local_aggregator.h"
#include "distro/v1/run.pb.h"
#include "worker/data/token_file.h"
#include "worker/optimizer/inner_optimizer.h"

namespace distro::worker {

enum class BaselineMethod {
  kAdamW,  // Loshchilov and Hutter, arXiv 1711.05101, algorithm 2; its epsilon is 1e-8
  kMuon,   // matrices inside the model by Muon with the run's beta as mu, the rest by AdamW
  kSgd,    // m <- beta * m + g;  p <- p - eta * (m + lambda * p)
};

struct BaselineOptions {
  BaselineMethod method = BaselineMethod::kAdamW;
  double beta1 = 0.9;  // SGD's momentum is the run's beta
  double beta2 = 0.95;
};

// The optimizer's step on one tensor. Not thread-safe.
class BaselineOptimizer {
 public:
  // `tensors`: those of the layout. Moments start at 0.
  BaselineOptimizer(const BaselineOptions& options, const v1::RunConfig& config,
                    const Layout& layout, std::vector<InnerTensor> tensors);

  // Before the tensors of a step.
  void BeginStep() { muon_.BeginStep(); }
  // parameters <- one step of the tensor, in f32. `step` counts from 1.
  void Step(int tensor, uint64_t step, double eta, double weight_decay,
            absl::Span<const float> gradient, absl::Span<float> parameters);

 private:
  void AdamW(int tensor, uint64_t step, double eta, absl::Span<const float> gradient,
             absl::Span<float> parameters);
  void Sgd(int tensor, double eta, double weight_decay, absl::Span<const float> gradient,
           absl::Span<float> parameters);

  const BaselineOptions options_;
  const double momentum_;
  TensorBuffer first_;   // SGD's momentum, AdamW's first moment, Muon's buffer
  TensorBuffer second_;  // AdamW's
  InnerOptimizer muon_;
};

// Trains the run and returns its curve. Bytes are those of a ring All-Reduce of f32 gradients, 2 (W
// - 1) / W * 4 P each way a round and a worker. Statuses as of Model and SampleReader.
absl::StatusOr<Curve> RunBaseline(const LocalRun& run, const TokenSource& tokens,
                                  const BaselineOptions& options);

}  // namespace distro::worker
