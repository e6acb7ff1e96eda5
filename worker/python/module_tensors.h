// The trainable tensors of a PyTorch module, in the order of a run's manifest, on whatever devices
// and in whatever floats they are, and the f32 copies that training them needs:
//
//   module   the program's own tensor, f32, bf16 or f16: what forward and backward use
//   master   f32 on the module's device: what an inner optimizer steps. The module's tensor itself
//            where that is f32
//   host     f32, contiguous, in the host's memory: what the rule of the run reads and writes. The
//            master itself where that is such memory
//
//   DISTRO_ASSIGN_OR_RETURN(ModuleTensors module, ModuleTensors::Create(names, parameters));
//   module.manifest();                               // what the run must have
//   spans = module.Elements(); ...; module.ShowElements();   // host -> master -> module
//   module.ScaleGradients(0.5); step; module.ShowMasters();  // master -> module
//   module.ReadElements();                           // master -> host
//
// The module stays the owner of its tensors; whoever changes their storage behind this object's
// back is told at the next call. Nothing is copied where two of the three are the same memory.
// Status of every call besides what it says: ResourceExhausted and Internal, the device's.
//
// Not thread-safe. What a call wrote to a device is there when it returns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/manifest.h"
#include "worker/optimizer/update_rule.h"
#include "worker/torch/torch.h"

namespace distro::worker {

class ModuleTensors {
 public:
  // Tied tensors once. Masters have the module's values. InvalidArgument: what Manifest::Create
  // refuses, or a tensor that cannot be trained as it is: of another type than f32, bf16 and f16,
  // without memory (meta), not strided, not to be trained (requires_grad); names the tensor and the
  // remedy.
  static absl::StatusOr<ModuleTensors> Create(std::vector<std::string> names,
                                              std::vector<at::Tensor> tensors);

  const Manifest& manifest() const { return manifest_; }
  // [tensors] in the manifest's order.
  const std::vector<at::Tensor>& masters() const { return masters_; }
  // Bytes in which tensor i lies: those of the module's own, of a master that is not the same, of
  // copies in the host's memory.
  struct Memory {
    int64_t module = 0;
    int64_t master = 0;
    int64_t host = 0;
  };
  Memory MemoryOf(size_t i) const;
  // Of the gradients that there are, of the module and of its masters.
  int64_t GradientBytes() const;

  // Where the host's elements are, [tensors], each f32 [elements], to be written; they are the
  // module's own, or of any content. Valid until the module's next change. InvalidArgument, here
  // and below: as Create, of what the tensors have become since.
  absl::StatusOr<RunSpans> Elements();
  // They were written: the masters and the module have them.
  absl::Status ShowElements();
  // The same spans with what the masters have.
  absl::StatusOr<RunSpans> ReadElements();
  // The masters were stepped: the module has them, rounded to its own floats.
  absl::Status ShowMasters();

  // The norm of all gradients together; that of a tensor is f32, as Torch sums. One that is missing
  // is 0.
  absl::StatusOr<double> GradientNorm();
  // Each master's gradient is the module's times `scale`. One that is missing is made, of zeros.
  absl::Status ScaleGradients(float scale);
  // The module's gradients in the host's memory, as Elements. One that is missing is of zeros.
  absl::StatusOr<RunSpans> Gradients();

 private:
  ModuleTensors(Manifest manifest, std::vector<at::Tensor> tensors);

  absl::Status Check() const;
  // Requires OK of Check: the module's, made where it is missing.
  absl::StatusOr<at::Tensor> GradientOf(size_t i) const;
  bool HasMaster(size_t i) const { return !masters_[i].is_same(tensors_[i]); }
  void Finish() const;

  Manifest manifest_;
  std::vector<at::Tensor> tensors_;  // in its order
  std::vector<at::Tensor> masters_;
  // Of tensors whose masters, or whose gradients, are no such memory; made when they are needed.
  std::vector<at::Tensor> host_;
  std::vector<at::Tensor> host_gradients_;
};

}  // namespace distro::worker
