// The baselines of DisTrO: the same model, samples, batch size, schedule and clipping, with the
// gradients of all workers averaged every round (All-Reduce) and a standard optimizer. One thread
// computes the gradients of all workers as one batch.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bench/convergence/curve.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"
#include "distro/v1/run.pb.h"
#include "server/log/run_identity.h"
#include "worker/data/token_file.h"
#include "worker/rules/deltas/inner_optimizer.h"
#include "worker/rules/host_backends.h"

namespace distro::worker {

enum class BaselineMethod {
  kAdamW,  // as inside a worker of the deltas method
  kMuon,   // the same; its mu is the run's beta
  kSgd,    // m <- beta * m + g;  p <- p - eta * (m + lambda * p)
};

struct BaselineOptions {
  BaselineMethod method = BaselineMethod::kAdamW;
  double beta1 = 0.9;  // SGD's momentum is the run's beta
  double beta2 = 0.95;
};

// The optimizer's step on all tensors. Not thread-safe.
class BaselineOptimizer {
 public:
  // `tensors`: those of the layout, which is borrowed. Moments start at 0.
  BaselineOptimizer(const BaselineOptions& options, const v1::RunConfig& config,
                    const Layout& layout, std::vector<InnerTensor> tensors);

  // parameters <- one step, in f32.
  absl::Status Step(double eta, const RunSpans& gradient, const RunSpans& parameters);

 private:
  void Sgd(int tensor, double eta, absl::Span<const float> gradient, absl::Span<float> parameters);

  const BaselineMethod method_;
  const double momentum_;
  const double weight_decay_;
  const std::vector<InnerTensor> tensors_;
  TensorBuffer first_;   // SGD's momentum, AdamW's first moment, Muon's buffer
  TensorBuffer second_;  // AdamW's
  const HostBackends host_;
  InnerOptimizer inner_;
};

// Trains the run and returns its curve. Bytes are those of a ring All-Reduce of bf16 gradients, 2
// (W - 1) / W * 2 P each way a round and a worker. Statuses as of Model and SampleReader.
absl::StatusOr<Curve> RunBaseline(const server::RunIdentity& run, const TokenSource& tokens,
                                  const BaselineOptions& options);

}  // namespace distro::worker
