// A unit of a model. A model is a list of units: embedding, blocks, head with loss. A unit is a
// pure forward function of its parameters and its input, so the caller may recompute a unit, gather
// its parameters just before and free them just after. Units hold no tensors; they are immutable
// and thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/torch/torch.h"

namespace distro::worker {

// Data shared by all units of one forward pass. B sequences, S positions.
struct Batch {
  at::Tensor tokens;  // i64 [B, S]
  // i64 [L, S] of each position of the first L sequences; those after them are padding. Undefined:
  // the head gives logits.
  at::Tensor labels;
  std::vector<at::Tensor> tables;  // computed by the architecture once for all units
  // Without labels: the only position that gets logits, those after it are padding; -1: all do.
  int64_t position = -1;
};

class Unit {
 public:
  // `tensors`: indices into the run's manifest, in the order in which Forward takes them. Units may
  // share a tensor (tied embeddings).
  Unit(std::string name, std::vector<int> tensors)
      : name_(std::move(name)), tensors_(std::move(tensors)) {}
  virtual ~Unit() = default;
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  absl::string_view name() const { return name_; }
  absl::Span<const int> tensors() const { return tensors_; }

  //   parameters  those of tensors()
  //   input       the output of the unit before; undefined for the first
  //   returns     f32 [B, S, hidden]; of the last unit the loss (f32, no dimensions) or logits
  //               (f32 [B, S, vocabulary]; of one position [B, 1, vocabulary])
  // Changes none of its arguments. Throws Torch's exceptions.
  virtual at::Tensor Forward(absl::Span<const at::Tensor> parameters, const at::Tensor& input,
                             const Batch& batch) const = 0;

 private:
  const std::string name_;
  const std::vector<int> tensors_;
};

}  // namespace distro::worker
