// Computes a model's loss, gradient and logits on a run's buffers. No Torch in this header.
// Parameters and gradients are not copied: Torch uses views of the TensorBuffers' memory.
//
// Immutable; thread-safe, with disjoint output buffers. Calls block and compute in the calling
// thread with as many threads as SetTorchThreads gave it; with one, equal inputs give equal bits.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/model/architecture.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"

namespace distro::worker {

class Unit;

// Sets the number of Torch's threads for calls from the calling thread. OpenMP keeps this number
// per thread, so every thread that calls Torch must call this first. Torch's second pool (between
// operations) is started only by TorchScript, which is not used, and a backward pass on the CPU
// runs in the calling thread. Requires threads >= 1.
void SetTorchThreads(int threads);

// i32 [sequences, tokens.size() / sequences], row-major; borrowed.
struct TokenBatch {
  absl::Span<const int32_t> tokens;
  int sequences = 1;
};

enum class Accumulation {
  kStore,  // overwrite: the first micro-batch
  kAdd,    // add on: the following ones
};

// Every function below returns
//   InvalidArgument     a batch that is not a whole number of sequences, is empty or longer than
//                       max_positions, a token outside the vocabulary, a buffer of another layout;
//                       names it
//   ResourceExhausted   Torch found no memory
//   Internal            any other error of Torch
class Model {
 public:
  // InvalidArgument: the layout's tensors are not architecture->Tensors(); names the first that is
  // missing, unexpected or of another shape. Unimplemented: as MakeUnits.
  static absl::StatusOr<std::unique_ptr<Model>> Create(
      std::shared_ptr<const Architecture> architecture, const Layout& layout);
  ~Model();

  const Architecture& architecture() const { return *architecture_; }
  // In the order of the data flow (worker/model/unit.h).
  absl::Span<const std::unique_ptr<Unit>> units() const { return units_; }
  // By tensor of the manifest.
  absl::Span<const std::vector<int64_t>> shapes() const { return shapes_; }

  // Mean cross entropy of sequences of S + 1 tokens: position s in 0..S-1 predicts token s + 1.
  absl::StatusOr<double> Loss(const TokenBatch& batch, const TensorBuffer& parameters) const;

  // The same loss; its gradient is stored in or added onto `gradient`, f32, every tensor. A shared
  // tensor's parts (tied embeddings) are summed first, the head's before the embedding's. A sum
  // over micro-batches of equal size, divided by their number, is the gradient of the mean.
  // After an error `gradient` is partly written.
  absl::StatusOr<double> LossAndGradient(const TokenBatch& batch, const TensorBuffer& parameters,
                                         Accumulation accumulation, TensorBuffer* gradient) const;

  // f32 [sequences, S, vocab_size] of sequences of S tokens.
  absl::StatusOr<std::vector<float>> Logits(const TokenBatch& batch,
                                            const TensorBuffer& parameters) const;
  // f32 [vocab_size], of the token after a sequence: the bits of UnitDriver's.
  absl::StatusOr<std::vector<float>> NextLogits(absl::Span<const int32_t> tokens,
                                                const TensorBuffer& parameters) const;

 private:
  Model(std::shared_ptr<const Architecture> architecture, std::vector<int64_t> elements,
        std::vector<std::vector<int64_t>> shapes, std::vector<std::unique_ptr<Unit>> units);
  absl::Status CheckBuffer(const TensorBuffer& buffer) const;

  const std::shared_ptr<const Architecture> architecture_;
  const std::vector<int64_t> elements_;             // by tensor of the manifest
  const std::vector<std::vector<int64_t>> shapes_;  // by tensor of the manifest
  const std::vector<std::unique_ptr<Unit>> units_;
};

}  // namespace distro::worker
