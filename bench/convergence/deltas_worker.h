// One worker of the lab under the deltas method: its copy of the parameters, its rule and its
// samples. Not thread-safe; different workers may work at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "bench/convergence/delta_messages.h"
#include "bench/convergence/deltas_settings.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"
#include "distro/v1/run.pb.h"
#include "worker/model/model.h"
#include "worker/rules/deltas/delta_rule.h"
#include "worker/rules/host_backends.h"
#include "worker/train/sample_reader.h"

namespace distro::worker {

// Shared by all workers; borrowed.
struct DeltasLab {
  const DeltasSettings* settings = nullptr;
  const v1::RunConfig* config = nullptr;
  const Layout* layout = nullptr;
  const SampleReader* samples = nullptr;
  const Model* model = nullptr;
  std::vector<InnerTensor> tensors;
  BlockForms forms;
};

class DeltasWorker {
 public:
  DeltasWorker(const DeltasLab* lab, int index);

  // Takes inner step `step` of the run on its own copy.
  absl::Status Step(uint64_t step);
  // Ends the window: makes the round's message and the update that it encodes.
  absl::Status Compress(const DeltaRound& round, TensorBuffer* parameters);

  int index() const { return index_; }
  DeltaUpdate update() const { return CopyOf(*rule_.update()); }
  DeltaMessage& message() { return message_; }

  // The round was included, with this result; or it was not.
  absl::Status Feedback(const DeltaResult& result) {
    const DeltaResult* one = &result;
    return rule_.Feedback({&one, 1});
  }
  void FeedbackOfMessage(const DeltaMeans& returned);
  void Missed() { rule_.ForgetPending(); }

  // Continues from p; with overlap, from p plus its changes since the end of the last window.
  absl::Status GoOnFrom(const TensorBuffer& parameters);
  void CarryOnto(const TensorBuffer& parameters);

 private:
  double GradientNorm() const;
  void MixSlowly(uint64_t step);

  const DeltasLab& lab_;
  const int index_;
  TensorBuffer error_;
  TensorBuffer first_;
  TensorBuffer second_;
  TensorBuffer copy_;  // x
  TensorBuffer end_;   // x as the last window left it, with overlap
  TensorBuffer gradient_;
  std::optional<TensorBuffer> slow_;  // v of settings.slow, if that is not 0
  const HostBackends host_;
  DeltaRule rule_;
  DeltaMessage message_;
  std::vector<int32_t> tokens_;
};

}  // namespace distro::worker
