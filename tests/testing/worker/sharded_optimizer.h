// An optimizer over the shards of some ranks, all on the calling thread, with whole tensors as
// input and output: for tests that compare shardings, or that need an optimizer with state.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"
#include "kernels/backend.h"
#include "kernels/device.h"
#include "worker/plan/shard_plan.h"
#include "worker/rules/optimizer.h"
#include "worker/rules/row_sums.h"
#include "worker/rules/update_rule.h"

namespace distro::testing {

class ShardedOptimizer {
 public:
  // All tensors are one unit, so that ranks begin and end inside tensors. `layout` is borrowed.
  explicit ShardedOptimizer(const Layout* layout, int ranks = 1);

  double Norm(const TensorBuffer& gradient);
  // Compresses the clipped gradient; the payloads of all segments.
  std::vector<SharedBytes> Compress(RoundId round, const v1::StepParameters& step,
                                    const TensorBuffer& gradient);
  std::vector<SharedBytes> Encode() const;
  void Feedback(const CommittedRound& round, int member);
  TensorBuffer Lookahead(float eta, const TensorBuffer& parameters);

  // Continues from the state of another process.
  void Restore(const TensorBuffer& momentum, const std::optional<worker::PendingUpdate>& pending);

  TensorBuffer momentum() const;
  // The rules' momentum, borrowed: for every tensor its runs, in order; one array.
  std::vector<TensorPieces> elements() const;
  // The pending update of the whole model; nullopt if there is none.
  std::optional<worker::PendingUpdate> pending() const;
  worker::Optimizer& optimizer() { return *optimizer_; }
  const worker::Optimizer& optimizer() const { return *optimizer_; }

 private:
  // The runs' elements in a buffer of whole tensors.
  worker::RunSpans RunsOf(int rank, TensorBuffer* buffer) const;

  const Layout* const layout_;
  const worker::ShardPlan plan_;
  const std::unique_ptr<Backend> backend_;
  const std::unique_ptr<Device> device_;
  std::vector<std::vector<float>> momentum_;  // [ranks], as shards
  std::vector<std::unique_ptr<worker::UpdateRule>> rules_;
  std::vector<std::unique_ptr<worker::RowSums>> row_sums_;
  std::unique_ptr<worker::Optimizer> optimizer_;
};

TensorBuffer Copy(const Layout& layout, const TensorBuffer& buffer);

}  // namespace distro::testing
