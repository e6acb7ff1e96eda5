// The trainable tensors of a PyTorch module, in the order of a run's manifest, on any device and of
// any float type, and the f32 copies that training needs:
//
//   module   the program's own tensor, f32, bf16 or f16: what forward and backward use
//   master   f32 on the module's device: what an inner optimizer steps. The module's tensor itself
//            where that is f32
//   host     f32, contiguous, in the host's memory: what the rule of the run reads and writes. The
//            master itself where that is such memory; otherwise, if the module is on a GPU, pinned
//
//   DISTRO_ASSIGN_OR_RETURN(ModuleTensors module, ModuleTensors::Create(names, parameters));
//   module.manifest();                               // what the run must have
//   spans = module.Elements(); ...; module.ShowElements();   // host -> master -> module
//   module.ClipGradients(1); step; module.ShowMasters();     // master -> module
//   module.ReadElements();                           // master -> host
//
// The module owns its tensors; the next call returns an error if their storage was changed
// elsewhere. If two of the three are the same memory, nothing is copied. Every call may also return
// ResourceExhausted and Internal, from the device.
//
// Not thread-safe. Calls are synchronous: writes to a device are done when they return.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/layout/manifest.h"
#include "worker/rules/update_rule.h"
#include "worker/torch/torch.h"

namespace distro::worker {

class ModuleTensors {
 public:
  // Takes tied tensors once, and scalars as tensors of shape [1]. Masters have the module's values.
  // InvalidArgument: as Manifest::Create, or a tensor that cannot be trained: another type than
  // f32, bf16 and f16, no memory (meta), not strided, no requires_grad; names the tensor and the
  // remedy.
  static absl::StatusOr<ModuleTensors> Create(std::vector<std::string> names,
                                              std::vector<at::Tensor> tensors);

  const Manifest& manifest() const { return manifest_; }
  // [tensors] in the manifest's order.
  const std::vector<at::Tensor>& masters() const { return masters_; }
  // Bytes of tensor i: of the module's tensor, of a separate master, of separate copies in the
  // host's memory, as allocated.
  struct Memory {
    int64_t module = 0;
    int64_t master = 0;
    int64_t host = 0;
  };
  Memory MemoryOf(size_t i) const;
  // Bytes of the existing gradients, of the module and of its masters.
  int64_t GradientBytes() const;

  // The host's elements, [tensors], each f32 [elements], to write: the module's own memory, or
  // copies with unspecified content. Valid until the module's next change. InvalidArgument, here
  // and below: as Create, if the tensors have changed since.
  absl::StatusOr<RunSpans> Elements();
  // Copies the written elements to the masters and the module.
  absl::Status ShowElements();
  // The same spans, with the masters' values.
  absl::StatusOr<RunSpans> ReadElements();
  // Copies the masters to the module, rounded to its float type, after a step.
  absl::Status ShowMasters();

  // The norm of all gradients together; Torch sums each tensor in f32. A missing gradient counts as
  // 0.
  absl::StatusOr<double> GradientNorm();
  // Sets each master's gradient to the module's, scaled to a norm of at most `clip_norm`; creates a
  // missing one with zeros. Returns the norm before. If that is not finite, only returns it.
  absl::StatusOr<double> ClipGradients(float clip_norm);
  // The module's gradients in the host's memory, as Elements; zeros for a missing one.
  absl::StatusOr<RunSpans> Gradients();

  // Waits until the devices have done what all threads have enqueued. Call it before another thread
  // uses the tensors: its streams are not ordered with this thread's.
  absl::Status Finish() const;

 private:
  ModuleTensors(Manifest manifest, std::vector<at::Tensor> tensors);

  absl::Status Check() const;
  // The module's gradient, created if missing. Requires that Check returned OK.
  absl::StatusOr<at::Tensor> GradientOf(size_t i) const;
  bool HasMaster(size_t i) const { return !masters_[i].is_same(tensors_[i]); }

  Manifest manifest_;
  std::vector<at::Tensor> tensors_;  // in its order
  std::vector<at::Tensor> masters_;
  // Copies for tensors whose masters, or whose gradients, are not such memory; made on demand.
  std::vector<at::Tensor> host_;
  std::vector<at::Tensor> host_gradients_;
};

}  // namespace distro::worker
